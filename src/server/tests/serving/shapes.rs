//! Watches that show objects as metadata alone or as Tables.

use keelson_machinery::json;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::protobuf;
use serde_json::Value;

use crate::setting::{Client, ORDERS, Server, text};

const METADATA: &str = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

async fn send(client: &mut Client, method: &str, name: &str, body: &str) {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("http://localhost{ORDERS}/{name}"))
        .header("content-type", "application/merge-patch+json")
        .body(body.to_owned().into())
        .unwrap();
    let answer = client.sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200, "{}", text(answer).await);
}

/// Makes, changes and deletes an order, beside one that is there before.
async fn change(client: &mut Client) {
    client.create("b", 10).await;
    send(client, "PATCH", "b", r#"{"metadata":{"labels":{"x":"y"}}}"#).await;
    send(client, "DELETE", "b", "").await;
}

/// The same of whole objects, as events of what is shown: type and metadata.
async fn expected(client: &mut Client, query: &str) -> Vec<(Value, Value)> {
    let mut whole = client.watch(query).await;
    let mut events = Vec::new();
    for _ in 0..4 {
        let mut event = whole.next().await.unwrap();
        events.push((event["type"].take(), event["object"]["metadata"].take()));
    }
    events
}

#[tokio::test]
async fn watches_of_metadata_show_that_of_the_objects() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    client.create("a", 10).await;
    let mut json = client.watch_as("", &format!("application/json;{METADATA}")).await;
    let accept = format!("application/vnd.kubernetes.protobuf;{METADATA}");
    let mut encoded = client.watch_as("", &accept).await;
    let mut again = client.clone();
    let (expected, ()) = tokio::join!(expected(&mut again, ""), change(&mut client));
    assert_eq!(expected[3].0, "DELETED");
    for (kind, metadata) in expected {
        let event = json.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["metadata"]), (&kind, &metadata));
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(event["object"]["apiVersion"], "meta.k8s.io/v1");

        let event = encoded.next_frame().await;
        assert_eq!(protobuf::field(&event, 1).unwrap(), kind.as_str().unwrap().as_bytes());
        let object = protobuf::field(protobuf::field(&event, 2).unwrap(), 1).unwrap();
        let envelope = protobuf::decode_envelope(object).unwrap();
        assert_eq!(envelope.kind, "PartialObjectMetadata");
        let (mut read, mut shown) = (ObjectMeta::default(), Vec::new());
        protobuf::read_message(protobuf::field(envelope.raw, 1).unwrap(), &mut read).unwrap();
        json::write(&read, &mut shown);
        assert_eq!(serde_json::from_slice::<Value>(&shown).unwrap(), metadata);
    }
}

#[tokio::test]
async fn watches_of_tables_show_a_row_for_each_event() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    client.create("a", 10).await;
    let mut shown = client.watch_as("", TABLE).await;
    let mut bare = client.watch_as("includeObject=None", TABLE).await;
    let mut whole = client.watch_as("includeObject=Object", TABLE).await;
    let mut again = client.clone();
    let (expected, ()) = tokio::join!(expected(&mut again, ""), change(&mut client));
    for (place, (kind, metadata)) in expected.into_iter().enumerate() {
        let tables = [&mut shown, &mut bare, &mut whole].map(|events| async { events.next().await.unwrap() });
        let [shown, bare, whole] = futures_util::future::join_all(tables).await.try_into().unwrap();
        for event in [&shown, &bare, &whole] {
            let table = &event["object"];
            assert_eq!((&event["type"], table["kind"].as_str()), (&kind, Some("Table")));
            assert_eq!(table["metadata"]["resourceVersion"], metadata["resourceVersion"]);
            assert_eq!(
                table["columnDefinitions"].is_array(),
                place == 0,
                "only the first names them"
            );
            assert_eq!(table["rows"][0]["cells"][0], metadata["name"]);
        }
        let object = |event: &Value| event["object"]["rows"][0]["object"].clone();
        assert_eq!(object(&shown)["metadata"], metadata);
        assert_eq!(object(&bare), Value::Null);
        assert_eq!(object(&whole)["metadata"], metadata);
        assert_eq!(object(&whole)["spec"]["customer"], "ann");
    }
}

/// What a client may take for the end of the initial state is not kept from it.
#[tokio::test]
async fn a_mark_among_annotations_is_shown_in_any_table() {
    let server = Server::with(|_| {});
    let mut client = server.client().await;
    client.create("a", 10).await;
    client.create("b", 10).await;
    let mark = r#"{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    send(&mut client, "PATCH", "b", mark).await;
    let label = r#"{"metadata":{"labels":{"k8s.io/initial-events-end":"true"}}}"#;
    send(&mut client, "PATCH", "a", label).await;
    let mut bare = client.watch_as("includeObject=None", TABLE).await;
    for name in ["a", "b"] {
        let event = bare.next().await.unwrap();
        let row = &event["object"]["rows"][0];
        assert_eq!((&row["cells"][0], row["object"].is_null()), (&name.into(), name == "a"));
    }
}
