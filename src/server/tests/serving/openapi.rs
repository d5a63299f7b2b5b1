//! OpenAPI of kinds of one's own.

use serde_json::Value;

use crate::setting::{Server, text};

/// kubectl reads definitions for strategic merge patches, fails at maps of messages, and warns at every `apply`.
#[tokio::test]
async fn kinds_with_maps_of_messages_are_not_offered_for_strategic_merge_patches() {
    let server = Server::configured(|_| {});
    let mut client = server.client().await;
    let path = "/apis/shop.example.com/v1/namespaces/{namespace}/orders/{name}";
    let read = text(client.get("/openapi/v3/apis/shop.example.com/v1").await).await;
    let document: Value = serde_json::from_str(&read).unwrap();
    let offered = document["paths"][path]["patch"]["requestBody"]["content"]
        .as_object()
        .unwrap();
    let offered: Vec<&String> = offered.keys().collect();
    let expected = [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ];
    for media in expected {
        assert!(offered.iter().any(|one| **one == media), "{offered:?}");
    }
    assert!(!offered.iter().any(|one| one.contains("strategic")), "{offered:?}");
    let read = text(client.get("/openapi/v2").await).await;
    let document: Value = serde_json::from_str(&read).unwrap();
    let consumes = document["paths"][path]["patch"]["consumes"].to_string();
    assert!(
        consumes.contains("merge-patch+json") && !consumes.contains("strategic"),
        "{consumes}"
    );
}
