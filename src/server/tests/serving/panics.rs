//! Panics: each costs its request, and nothing else.

use std::sync::Arc;

use keelson_access::authz::{Answer, Authorization, Authorizer, Decision, Rules};
use keelson_access::request_info::RequestInfo;
use keelson_access::user::User;

use crate::setting::{ORDERS, Server, text};

/// Panics over one name.
pub(crate) struct Panics;

impl Authorizer for Panics {
    fn authorize<'a>(&'a self, _: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        assert!(info.name != "panic", "an authorizer that panics");
        Decision::Allow(String::new()).into()
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules::default()
    }
}

/// Reliability, panics: 500 for that request alone, and a metric that tells of it.
#[tokio::test]
async fn a_panic_is_an_answer_and_a_count() {
    let server = Server::configured(|config| config.access.authorization = Authorization::new(vec![Arc::new(Panics)]));
    let mut client = server.client().await;
    let mut watch = client.watch("").await;
    for round in 1..4 {
        let answer = client.get(&format!("{ORDERS}/panic")).await;
        assert_eq!(answer.status(), 500);
        assert!(
            text(answer)
                .await
                .starts_with("This request caused apiserver to panic.")
        );
        let name = format!("order-{round}");
        client.create(&name, 0).await;
        assert_eq!(watch.next_name().await, name);
        let metrics = text(client.get("/metrics").await).await;
        let counted = metrics.lines().find(|line| {
            line.starts_with("apiserver_request_total{")
                && ["\"500\"", "\"orders\""].iter().all(|part| line.contains(part))
        });
        assert!(
            counted.is_some_and(|line| line.ends_with(&format!(" {round}"))),
            "{counted:?}"
        );
    }
}
