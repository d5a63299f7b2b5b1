//! Copies of a store that serves: who gets one.

use std::sync::Arc;

use keelson_access::authz::Authorization;
use keelson_storage::{HistoryLimits, StoreConfig};

use crate::setting::{Server, Verbs, text};

const PATH: &str = "/debug/store/snapshot";

#[tokio::test]
async fn a_right_to_look_is_none_to_a_copy_of_everything() {
    let folder = tempfile::tempdir().unwrap();
    for (verbs, status, words) in [
        (
            &["get"][..],
            403,
            r#"User \"system:anonymous\" cannot copy path \"/debug/store/snapshot\": no such verb"#,
        ),
        (
            &["copy"],
            403,
            r#"User \"system:anonymous\" cannot get path \"/debug/store/snapshot\": no such verb"#,
        ),
        (&["get", "copy"], 200, ""),
    ] {
        let dir = folder.path().join(verbs.join("-"));
        let history = HistoryLimits::default();
        let store = keelson_storage::open(StoreConfig::Embedded { dir, history })
            .await
            .unwrap();
        let server = Server::configured(move |config| {
            config.storage.store = store;
            config.access.authorization = Authorization::new(vec![Arc::new(Verbs(verbs))]);
        });
        let answer = server.client().await.get(PATH).await;
        assert_eq!(answer.status(), status, "{verbs:?}");
        if status == 403 {
            let told = text(answer).await;
            assert!(told.contains(words), "{told}");
        }
    }
}
