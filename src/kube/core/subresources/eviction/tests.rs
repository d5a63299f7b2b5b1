//! Tests of evictions: why budgets refuse, and many at once.

use std::sync::Arc;

use futures_util::future::join_all;
use keelson_access::authz::Authorization;
use keelson_access::request_info::Query;
use keelson_access::user::User;
use keelson_api::core::v1::{Namespace, ServiceAccount};
use keelson_machinery::meta::v1::{ObjectMeta, Preconditions};
use keelson_registry::admission::Options;
use keelson_registry::managed::Tracking;
use keelson_registry::verbs::HandledRequest;
use keelson_registry::{Verbs, Warnings};
use tokio::task::LocalSet;

use super::*;
use crate::core::service::testing::{Cluster, Server};
use crate::testing::read;

fn budget(status: &str) -> PodDisruptionBudget {
    read(&format!(
        r#"{{"metadata":{{"name":"b","generation":2}},"status":{status}}}"#
    ))
}

#[test]
fn budgets_say_why_they_refuse() {
    for (status, why, retry) in [
        (
            r#"{"observedGeneration":1,"disruptionsAllowed":1}"#,
            "The disruption budget b is still being processed by the server.",
            RETRY_SECONDS,
        ),
        (
            r#"{"observedGeneration":2,"currentHealthy":4,"desiredHealthy":4}"#,
            "The disruption budget b needs 4 healthy pods and has 4 currently",
            0,
        ),
        (
            r#"{"observedGeneration":2,"currentHealthy":5,"desiredHealthy":4}"#,
            "The disruption budget b does not allow evicting pods currently",
            0,
        ),
        (
            r#"{"observedGeneration":2,"currentHealthy":5,"desiredHealthy":4,"conditions":[
                {"type":"DisruptionAllowed","status":"False","reason":"Odd","message":"why"}]}"#,
            "The disruption budget b does not allow evicting pods currently (Odd): why",
            0,
        ),
        (
            r#"{"observedGeneration":2,"conditions":[
                {"type":"DisruptionAllowed","status":"False","reason":"SyncFailed","message":"why"}]}"#,
            "The disruption budget b does not allow evicting pods currently because it failed sync: why",
            0,
        ),
    ] {
        let error = check(&budget(status)).unwrap_err();
        let details = error.details.unwrap();
        assert_eq!((error.code, details.retry_after_seconds), (429, retry));
        assert_eq!(details.causes[0].message, why);
    }
}

#[test]
fn the_last_disruption_is_noted_as_such() {
    let mut budget = budget(r#"{"observedGeneration":2,"disruptionsAllowed":2}"#);
    take(&mut budget, "p", Time::from_unix(5, 0));
    assert!(budget.status.conditions.is_empty());
    take(&mut budget, "q", Time::from_unix(6, 0));
    assert_eq!(budget.status.disruptions_allowed, 0);
    assert_eq!(budget.status.disrupted_pods.len(), 2);
    let condition = &budget.status.conditions[0];
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "InsufficientPods")
    );
    assert_eq!(check(&budget).unwrap_err().code, 429);
}

#[test]
fn unready_pods_go_when_enough_others_are_healthy() {
    for (spec, status, want) in [
        ("{}", r#"{"currentHealthy":4,"desiredHealthy":4}"#, true),
        ("{}", r#"{"currentHealthy":4}"#, false),
        ("{}", r#"{"currentHealthy":3,"desiredHealthy":4}"#, false),
        (r#"{"unhealthyPodEvictionPolicy":"AlwaysAllow"}"#, "{}", true),
        (r#"{"unhealthyPodEvictionPolicy":"IfHealthyBudget"}"#, "{}", false),
    ] {
        let budget: PodDisruptionBudget = read(&format!(r#"{{"spec":{spec},"status":{status}}}"#));
        assert_eq!(may_go_unready(&budget), want, "{spec} {status}");
    }
}

/// Asks a server to evict a pod.
async fn evict(server: &Server, pod: &str, options: Option<DeleteOptions>) -> Result<(), StatusError> {
    let verbs: &Arc<Verbs> = &server.verbs;
    let endpoint = verbs.registry.lookup("", "v1", "pods").unwrap();
    let subresource = endpoint.kind.subresources.iter().find(|one| one.name == "eviction");
    let query = Query::parse("");
    let request = HandledRequest {
        endpoint: &endpoint,
        subresource,
        name: pod,
        query: &query,
        upgrade: false,
        context: Context {
            now: server.client().now(),
            namespace: "ns".to_owned(),
            user: User::anonymous(),
            asked: Default::default(),
            verbs: Some(verbs.clone()),
            authorization: Authorization::default(),
            dry_run: false,
            tracking: Tracking::Keep,
            warnings: Warnings::default(),
            audit: None,
        },
    };
    let eviction = Eviction {
        metadata: ObjectMeta {
            name: pod.to_owned(),
            namespace: "ns".to_owned(),
            ..ObjectMeta::default()
        },
        delete_options: options.map(Box::new),
    };
    let done = verbs.create_handled(&request, Box::new(eviction), Options::None).await;
    done.map(drop)
}

/// A namespace with pods that are ready, but for those whose names say otherwise, and a budget for all of them.
async fn with_pods(server: &Server, names: &[&str], budget: &str) {
    let client = server.client();
    let namespace: Namespace = read(r#"{"metadata":{"name":"ns"}}"#);
    client.of("").unwrap().create(namespace).await.unwrap();
    let account: ServiceAccount = read(r#"{"metadata":{"name":"default","namespace":"ns"}}"#);
    client.of("ns").unwrap().create(account).await.unwrap();
    let pods = client.of::<Pod>("ns").unwrap();
    for name in names {
        let pod: Pod = read(&format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"ns","labels":{{"a":"b"}}}},
                "spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}"#
        ));
        pods.create(pod).await.unwrap();
        let ready = if name.starts_with("unready") { "False" } else { "True" };
        let status: Pod = read(&format!(
            r#"{{"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#
        ));
        let fill = |pod: &mut Pod| pod.status.clone_from(&status.status);
        client
            .of::<Pod>("ns")
            .unwrap()
            .subresource("status")
            .unwrap()
            .update(name, fill)
            .await
            .unwrap();
    }
    let new: PodDisruptionBudget = read(
        r#"{"metadata":{"name":"b","namespace":"ns"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}}"#,
    );
    let budgets = client.of::<PodDisruptionBudget>("ns").unwrap();
    budgets.create(new).await.unwrap();
    let status: PodDisruptionBudget = read(&format!(r#"{{"status":{budget}}}"#));
    let fill = |budget: &mut PodDisruptionBudget| {
        budget.status.clone_from(&status.status);
        budget.status.observed_generation = budget.metadata.generation;
    };
    budgets.subresource("status").unwrap().update("b", fill).await.unwrap();
}

/// Twenty evictions at once, half of them by each of two servers, of which the budget allows seven.
#[tokio::test]
async fn a_budget_is_never_overdrawn() {
    LocalSet::new()
        .run_until(async {
            let cluster = Cluster::new(Default::default());
            let servers = [cluster.server(), cluster.server()];
            let names: Vec<String> = (0..20).map(|n| format!("p{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let status = r#"{"disruptionsAllowed":7,"currentHealthy":20,"desiredHealthy":13,"expectedPods":20}"#;
            with_pods(&servers[0], &names, status).await;
            let all = names
                .iter()
                .enumerate()
                .map(|(n, name)| evict(&servers[n % 2], name, None));
            let done = join_all(all).await;
            assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 7);
            assert!(
                done.iter()
                    .filter_map(|done| done.as_ref().err())
                    .all(|error| error.code == 429)
            );
            let client = servers[0].client();
            assert_eq!(client.of::<Pod>("ns").unwrap().all().await.unwrap().len(), 13);
            let budget = client
                .of::<PodDisruptionBudget>("ns")
                .unwrap()
                .find("b")
                .await
                .unwrap()
                .unwrap();
            assert_eq!(
                (budget.status.disruptions_allowed, budget.status.disrupted_pods.len()),
                (0, 7)
            );
        })
        .await;
}

#[tokio::test]
async fn unready_pods_and_preconditions() {
    LocalSet::new()
        .run_until(async {
            let cluster = Cluster::new(Default::default());
            let server = cluster.server();
            let status = r#"{"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":3}"#;
            with_pods(&server, &["p", "unready-1", "unready-2"], status).await;
            assert_eq!(evict(&server, "p", None).await.unwrap_err().code, 429);
            let of_version = |version: &str| DeleteOptions {
                preconditions: Some(Box::new(Preconditions {
                    resource_version: Some(version.to_owned()),
                    ..Preconditions::default()
                })),
                ..DeleteOptions::default()
            };
            // Whoever names no version is asked to come again, whoever does learns that it is another one.
            assert_eq!(
                evict(&server, "unready-1", None).await.map_err(|error| error.code),
                Ok(())
            );
            let pods = server.client().of::<Pod>("ns").unwrap();
            let left = pods.find("unready-2").await.unwrap().unwrap();
            let wrong = DeleteOptions {
                preconditions: Some(Box::new(Preconditions {
                    uid: Some("other".to_owned()),
                    ..Preconditions::default()
                })),
                ..DeleteOptions::default()
            };
            assert_eq!(evict(&server, "unready-2", Some(wrong)).await.unwrap_err().code, 429);
            assert!(
                pods.find("unready-2").await.unwrap().unwrap().status.conditions.len() == 1,
                "it was not marked"
            );
            let right = of_version(&left.metadata.resource_version);
            assert_eq!(
                evict(&server, "unready-2", Some(right))
                    .await
                    .map_err(|error| error.code),
                Ok(())
            );
            let client = server.client();
            let budget = client
                .of::<PodDisruptionBudget>("ns")
                .unwrap()
                .find("b")
                .await
                .unwrap()
                .unwrap();
            assert!(
                budget.status.disrupted_pods.is_empty(),
                "no budget counts the loss of what is not ready"
            );
        })
        .await;
}
