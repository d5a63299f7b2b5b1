//! Levels of a namespace, by every path that makes a pod or changes what it runs.

use std::sync::Arc;

use keelson_api::core::v1::{Namespace, Pod};
use keelson_machinery::json;
use keelson_machinery::reflect::Reflect;
use keelson_registry::TypedObjects;

use super::PodSecurity;
use crate::admission::testing::{client, server};

fn read<T: Reflect + Default>(text: &str) -> T {
    let mut object = T::default();
    json::read(text.as_bytes(), &mut object).unwrap();
    object
}

fn pod(name: &str, privileged: bool) -> Pod {
    read(&format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default"}},"spec":{{"containers":[{{"name":"c","image":"i",
            "securityContext":{{"privileged":{privileged}}}}}]}}}}"#
    ))
}

/// CVE-2017-1000056: whoever writes, and by whatever path, what holds is what the namespace demands.
#[tokio::test]
async fn no_path_of_a_pod_leads_around_the_level_of_its_namespace() {
    let verbs = server(vec![Arc::new(PodSecurity::default())]).await;
    let client = client(&verbs);
    let pods: TypedObjects<Pod> = client.of("default").unwrap();
    for name in ["before", "untouched"] {
        pods.create(pod(name, true)).await.unwrap();
    }
    let level = |level: &'static str| {
        move |namespace: &mut Namespace| {
            let key = "pod-security.kubernetes.io/enforce".to_owned();
            namespace.metadata.labels.insert(key, level.to_owned());
        }
    };
    let namespaces: TypedObjects<Namespace> = client.of("").unwrap();
    namespaces.update("default", level("baseline")).await.unwrap();

    let refused = |done: Result<Pod, keelson_machinery::status::StatusError>| {
        let error = done.err().unwrap();
        assert_eq!(error.code, 403, "{}", error.message);
        assert!(
            error.message.contains("violates PodSecurity \"baseline:latest\""),
            "{}",
            error.message
        );
    };
    refused(pods.create(pod("after", true)).await);
    pods.create(pod("harmless", false)).await.unwrap();
    let other_image = |pod: &mut Pod| pod.spec.containers[0].image = "other".to_owned();
    refused(pods.update("before", other_image).await);
    pods.update("harmless", other_image).await.unwrap();
    let debug = |privileged: bool| {
        move |pod: &mut Pod| {
            let with: Pod = read(&format!(
                r#"{{"spec":{{"ephemeralContainers":[{{"name":"debug","image":"i","imagePullPolicy":"Always",
                    "terminationMessagePath":"/t","terminationMessagePolicy":"File",
                    "securityContext":{{"privileged":{privileged}}}}}]}}}}"#
            ));
            pod.spec.ephemeral_containers = with.spec.ephemeral_containers;
        }
    };
    let debugged = pods.subresource("ephemeralcontainers").unwrap();
    refused(debugged.update("harmless", debug(true)).await);
    let debugged: TypedObjects<Pod> = client.of("default").unwrap();
    let debugged = debugged.subresource("ephemeralcontainers").unwrap();
    debugged.update("harmless", debug(false)).await.unwrap();

    // What runs stays as it is, and what it is called has nothing to do with it.
    let pods: TypedObjects<Pod> = client.of("default").unwrap();
    let label = |pod: &mut Pod| drop(pod.metadata.labels.insert("a".to_owned(), "b".to_owned()));
    pods.update("untouched", label).await.unwrap();
    // Nobody takes a level for one that it is not.
    let error = namespaces.update("default", level("Privileged")).await.err().unwrap();
    assert_eq!(error.code, 422, "{}", error.message);
}
