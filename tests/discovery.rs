//! Discovery: equal to kube-apiserver's for what exists here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

mod facts;

use std::path::Path;

use bytes::Bytes;
use facts::facts;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response};
use keelson::api::SCHEME;
use keelson_machinery::scheme::Scheme;
use keelson_server::discovery::{Ask, Discovery, RuntimeConfig, Served};
use serde_json::Value;

static SCHEMES: [&Scheme; 1] = [&SCHEME];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn discovery(config: &str) -> Discovery {
    let config = RuntimeConfig::parse([config]).unwrap();
    Discovery::new(Served::new(&SCHEMES, &config).fixed(), "192.0.2.2:27000".to_owned())
}

fn accept(types: &'static str) -> HeaderMap {
    [(ACCEPT, HeaderValue::from_static(types))].into_iter().collect()
}

fn ask(discovery: &Discovery, path: &str, query: &str, headers: &HeaderMap) -> Option<Response<Bytes>> {
    let ask = Ask {
        method: "GET",
        path,
        query,
        headers,
    };
    discovery.answer(ask).map(|answer| {
        answer.unwrap_or_else(|status| {
            let refused = Response::builder().status(status.code);
            refused.body(Bytes::from(status.message)).unwrap()
        })
    })
}

fn get(discovery: &Discovery, path: &str, types: &'static str) -> Value {
    let response = ask(discovery, path, "", &accept(types)).unwrap_or_else(|| panic!("{path} is not served"));
    assert_eq!(response.status(), 200, "{path}");
    serde_json::from_slice(response.body()).unwrap()
}

/// A document of kube-apiserver.
fn fact(facts: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(facts.join(format!("discovery/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Takes out the groups of definitions that are not of Kubernetes.
fn without_foreign(mut value: Value) -> Value {
    let foreign = |v: &Value| {
        let name = v
            .get("name")
            .or_else(|| v.pointer("/metadata/name"))
            .and_then(Value::as_str);
        name.is_some_and(|name| name.contains('.') && !name.ends_with(".k8s.io"))
    };
    for list in ["groups", "items"] {
        if let Some(groups) = value.get_mut(list).and_then(Value::as_array_mut) {
            groups.retain(|group| !foreign(group));
        }
    }
    value
}

/// As text, so that the order of keys counts too; by line, so that a failure can be read.
fn assert_same(ours: &Value, theirs: &Value, path: &str) {
    let (ours, theirs) = (format!("{ours:#}"), format!("{theirs:#}"));
    let mut lines = ours.lines().zip(theirs.lines()).enumerate();
    if let Some((line, (a, b))) = lines.find(|(_, (a, b))| a != b) {
        let context: Vec<&str> = ours.lines().skip(line.saturating_sub(8)).take(8).collect();
        panic!("{path}:\n{}\nours:   {a}\ntheirs: {b}", context.join("\n"));
    }
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{path}");
}

#[test]
fn documents_equal_those_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let discovery = discovery("");
    let mut files: Vec<String> = std::fs::read_dir(facts.join("discovery"))
        .unwrap()
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()?
                .strip_suffix(".json")
                .map(str::to_owned)
        })
        .filter(|name| name.starts_with("api") && !name.contains("aggregated"))
        .collect();
    files.sort();
    assert!(files.len() > 40, "{files:?}");
    for file in files {
        let path = format!("/{}", file.replace('_', "/"));
        let ours = without_foreign(get(&discovery, &path, "application/json"));
        assert_same(&ours, &fact(&facts, &file), &path);
    }
    for (path, file) in [("/api", "api_aggregated_v2"), ("/apis", "apis_aggregated_v2")] {
        assert_same(
            &without_foreign(get(&discovery, path, AGGREGATED)),
            &fact(&facts, file),
            path,
        );
    }
}

#[test]
fn everything_that_can_be_switched_on_is_that_of_kube_apiserver() {
    let Some(facts) = facts() else { return };
    let discovery = discovery("api/all=true");
    let ours = |types| without_foreign(get(&discovery, "/apis", types));
    assert_same(&ours("application/json"), &fact(&facts, "alpha_apis"), "/apis");
    assert_same(&ours(AGGREGATED), &fact(&facts, "alpha_apis_aggregated_v2"), "/apis");
}

#[test]
fn every_path_of_discovery_is_listed() {
    let Some(facts) = facts() else { return };
    for (config, file) in [("", "root_paths"), ("api/all=true", "alpha_root_paths")] {
        let all = fact(&facts, file);
        let theirs: Vec<&str> = all["paths"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let theirs: Vec<&str> = theirs.into_iter().filter(|path| path.starts_with("/api")).collect();
        let discovery = discovery(config);
        let ours = discovery.paths();
        let ours: Vec<&str> = ours
            .iter()
            .map(String::as_str)
            .filter(|path| !is_foreign(path))
            .collect();
        assert_eq!(ours, theirs, "{config}");
    }
}

fn is_foreign(path: &str) -> bool {
    let group = path.strip_prefix("/apis/").and_then(|rest| rest.split('/').next());
    group.is_some_and(|group| group.contains('.') && !group.ends_with(".k8s.io"))
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
            "application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;q=0.1",
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
    let older = accept("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList");
    assert_eq!(ask(&discovery, "/apis", "", &older).unwrap().status(), 406);
    assert_eq!(
        ask(&discovery, "/apis/", "", &accept(AGGREGATED)).unwrap().status(),
        406
    );
}

#[test]
fn aggregated_discovery_is_cached_by_clients() {
    let discovery = discovery("");
    let mut headers = accept(AGGREGATED);
    let first = ask(&discovery, "/apis", "", &headers).unwrap();
    assert_eq!(first.headers()[CONTENT_TYPE], AGGREGATED);
    assert_eq!(first.headers()[CACHE_CONTROL], "public");
    assert_eq!(first.headers()[VARY], "Accept");
    headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
    let second = ask(&discovery, "/apis", "", &headers).unwrap();
    assert_eq!((second.status().as_u16(), second.body().len()), (304, 0));
}

#[test]
fn methods() {
    let discovery = discovery("");
    let status = |method, path| {
        let headers = HeaderMap::new();
        let ask = Ask {
            method,
            path,
            query: "",
            headers: &headers,
        };
        discovery
            .answer(ask)
            .map(|answer| answer.map_or_else(|e| e.code, |r| r.status().as_u16()))
    };
    for (path, post) in [
        ("/api", Some(405)),
        ("/api/v1", Some(405)),
        ("/apis", Some(200)),
        ("/apis/", Some(200)),
        ("/apis/apps", Some(200)),
        ("/apis/apps/v1", Some(405)),
        ("/apis/nope", None),
        ("/apis/apps//v1", None),
    ] {
        assert_eq!(status("POST", path), post, "{path}");
    }
}

#[test]
fn protobuf_says_the_same() {
    use keelson_machinery::meta::v1::{APIGroup, APIGroupDiscoveryList};
    use keelson_machinery::object::Kind;
    use keelson_machinery::{json, protobuf};
    let discovery = discovery("");
    let check = |path: &str, types: &'static str, json_types: &'static str, object: &mut dyn Kind| {
        let response = ask(&discovery, path, "", &accept(types)).unwrap();
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
    let response = ask(&discovery, "/apis/apps/v1", "", &accept("application/yaml")).unwrap();
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
        assert!(ask(&discovery, path, "", &HeaderMap::new()).is_none(), "{path}");
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
        ask(&discovery, "/apis/apps", query, &HeaderMap::new())
            .unwrap()
            .into_body()
    };
    assert!(body("pretty=true").starts_with(b"{\n  \"kind\": \"APIGroup\",\n  \"apiVersion\": \"v1\","));
    assert!(body("").ends_with(b"}\n"));
}
