//! Discovery: equal to kube-apiserver's for what exists here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod facts;

use std::sync::Arc;

use facts::facts;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue};
use keelson::api::SCHEME;
use keelson_machinery::scheme::Scheme;
use keelson_server::discovery::{Discovery, RuntimeConfig, Served};
use serde_json::Value;

static SCHEMES: [&Scheme; 1] = [&SCHEME];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn discovery(config: &str) -> Discovery {
    let config = RuntimeConfig::parse([config]).unwrap();
    Discovery::new(Arc::new(Served::new(&SCHEMES, &config)), "192.0.2.2:27000".to_owned())
}

fn accept(types: &'static str) -> HeaderMap {
    [(ACCEPT, HeaderValue::from_static(types))].into_iter().collect()
}

fn get(discovery: &Discovery, path: &str, types: &'static str) -> Value {
    let response = discovery
        .answer(path, "", &accept(types))
        .unwrap_or_else(|| panic!("{path} is not served"));
    assert_eq!(response.status(), 200, "{path}");
    serde_json::from_slice(response.body()).unwrap()
}

/// Takes out of kube-apiserver's document the groups, resources and subresources that do not exist here, which are
/// recognised by not being in `ours`.
fn restrict(theirs: &mut Value, ours: &Value) {
    let key = |v: &Value| {
        let names = ["name", "resource", "subresource", "version"];
        names
            .iter()
            .find_map(|n| v.get(n).cloned())
            .or_else(|| v.pointer("/metadata/name").cloned())
    };
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            theirs.retain(|name, _| name != "subresources" || ours.contains_key(name));
            for (name, value) in theirs {
                if let Some(own) = ours.get(name) {
                    restrict(value, own);
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if theirs.iter().all(Value::is_object) {
                theirs.retain(|t| ours.iter().any(|o| key(o) == key(t)));
            }
            for value in theirs {
                if let Some(own) = ours.iter().find(|o| key(o) == key(value)) {
                    restrict(value, own);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn documents_equal_those_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let discovery = discovery("");
    for (path, file, types) in [
        ("/api", "api", "*/*"),
        ("/api/v1", "api_v1", "application/json"),
        ("/apis", "apis", "application/json"),
        ("/apis/apps", "apis_apps", "*/*"),
        ("/apis/apps/v1", "apis_apps_v1", "*/*"),
        ("/apis/autoscaling", "apis_autoscaling", "*/*"),
        ("/apis/autoscaling/v1", "apis_autoscaling_v1", "*/*"),
        ("/apis/autoscaling/v2", "apis_autoscaling_v2", "*/*"),
        ("/apis/coordination.k8s.io/v1", "apis_coordination.k8s.io_v1", "*/*"),
        ("/api", "api_aggregated_v2", AGGREGATED),
        ("/apis", "apis_aggregated_v2", AGGREGATED),
    ] {
        let text = std::fs::read_to_string(facts.join(format!("discovery/{file}.json"))).unwrap();
        let ours = get(&discovery, path, types);
        let mut theirs: Value = serde_json::from_str(&text).unwrap();
        restrict(&mut theirs, &ours);
        // As text, so that the order of keys counts too.
        assert_eq!(ours.to_string(), theirs.to_string(), "{path}");
    }
}

#[test]
fn aggregated_only_for_those_who_ask() {
    let discovery = discovery("");
    for (types, aggregated) in [
        (AGGREGATED, true),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
            true,
        ),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
            false,
        ),
        ("application/json", false),
        ("*/*", false),
    ] {
        let kind = get(&discovery, "/apis", types)["kind"].clone();
        assert_eq!(kind == "APIGroupDiscoveryList", aggregated, "{types}");
    }
    let response = discovery
        .answer(
            "/apis",
            "",
            &accept("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
        )
        .unwrap();
    assert_eq!(response.status(), 406);
}

#[test]
fn aggregated_discovery_is_cached_by_clients() {
    let discovery = discovery("");
    let mut headers = accept(AGGREGATED);
    let first = discovery.answer("/apis", "", &headers).unwrap();
    assert_eq!(first.headers()[CONTENT_TYPE], AGGREGATED);
    assert_eq!(first.headers()[CACHE_CONTROL], "public");
    assert_eq!(first.headers()[VARY], "Accept");
    headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
    let second = discovery.answer("/apis", "", &headers).unwrap();
    assert_eq!((second.status().as_u16(), second.body().len()), (304, 0));
}

#[test]
fn protobuf_says_the_same() {
    use keelson_machinery::meta::v1::{APIGroup, APIGroupDiscoveryList};
    use keelson_machinery::object::Kind;
    use keelson_machinery::{json, protobuf};
    let discovery = discovery("");
    let check = |path: &str, types: &'static str, json_types: &'static str, object: &mut dyn Kind| {
        let response = discovery.answer(path, "", &accept(types)).unwrap();
        assert_eq!(response.headers()[CONTENT_TYPE], types);
        let envelope = protobuf::decode_envelope(response.body()).unwrap();
        protobuf::read_message(envelope.raw, object.as_reflect_mut()).unwrap();
        let decoded: Value = serde_json::from_slice(&json::to_vec(object)).unwrap();
        assert_eq!(decoded, get(&discovery, path, json_types), "{path}");
    };
    let protobuf = "application/vnd.kubernetes.protobuf";
    check("/apis/apps", protobuf, "application/json", &mut APIGroup::default());
    let aggregated = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    check("/apis", aggregated, AGGREGATED, &mut APIGroupDiscoveryList::default());
}

#[test]
fn yaml_says_the_same() {
    let discovery = discovery("");
    let response = discovery
        .answer("/apis/apps/v1", "", &accept("application/yaml"))
        .unwrap();
    assert_eq!(response.headers()[CONTENT_TYPE], "application/yaml");
    let json = keelson_machinery::yaml::to_json(response.body()).unwrap();
    let value: Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(value, get(&discovery, "/apis/apps/v1", "application/json"));
}

#[test]
fn what_is_switched_off_is_not_there() {
    let discovery = discovery("apps/v1=false,autoscaling/v2=false,api/v1/pods=false");
    for path in [
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/autoscaling/v2",
        "/apis/none",
        "/apis//v1",
        "/api/v2",
    ] {
        assert!(discovery.answer(path, "", &HeaderMap::new()).is_none(), "{path}");
    }
    assert_eq!(
        get(&discovery, "/apis/autoscaling", "*/*")["preferredVersion"]["version"],
        "v1"
    );
    let names = get(&discovery, "/api/v1", "*/*")["resources"].to_string();
    assert!(names.contains("\"services\"") && !names.contains("\"pods"));
    let paths = discovery.paths();
    assert!(paths.contains(&"/apis/autoscaling/v1".to_owned()) && !paths.contains(&"/apis/apps".to_owned()));
}

#[test]
fn indented_for_people() {
    let discovery = discovery("");
    let body = |query: &str| {
        discovery
            .answer("/apis/apps", query, &HeaderMap::new())
            .unwrap()
            .into_body()
    };
    assert!(body("pretty=true").starts_with(b"{\n  \"kind\": \"APIGroup\",\n  \"apiVersion\": \"v1\","));
    assert!(body("").ends_with(b"}\n"));
}
