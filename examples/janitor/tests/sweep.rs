//! The program against a server of the test's own: a whole Kubernetes API in this process, there in milliseconds.

use janitor::{EXPIRES, sweep};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use keelson::testing::TestServer;
use kube::api::{Api, PostParams};
use kube::config::Kubeconfig;
use kube::{Client, Config};

async fn client(server: &TestServer) -> Client {
    let file = Kubeconfig::from_yaml(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(file, &Default::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn expiring(name: &str, at: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.metadata.annotations = Some([(EXPIRES.to_owned(), at.to_owned())].into());
    map
}

#[tokio::test]
async fn what_has_expired_is_swept() {
    let server = TestServer::start(|| keelson::Server::new("janitor-test").kubernetes()).unwrap();
    let client = client(&server).await;
    let mut elsewhere = Namespace::default();
    elsewhere.metadata.name = Some("elsewhere".to_owned());
    Api::all(client.clone())
        .create(&PostParams::default(), &elsewhere)
        .await
        .unwrap();
    for (namespace, name, at) in [
        ("default", "old", "100"),
        ("default", "new", "200"),
        ("default", "odd", "tomorrow"),
        ("elsewhere", "old", "99"),
    ] {
        let maps = Api::namespaced(client.clone(), namespace);
        maps.create(&PostParams::default(), &expiring(name, at)).await.unwrap();
    }
    assert_eq!(sweep(&client, 100).await.unwrap(), 2);
    assert_eq!(sweep(&client, 100).await.unwrap(), 0);
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    assert!(maps.get_opt("old").await.unwrap().is_none() && maps.get_opt("new").await.unwrap().is_some());
}
