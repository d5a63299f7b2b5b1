//! Products: requests whose work was that of one place times that of another, of the same object or of one that is
//! stored.

use super::{JSON, MAX, Run, body_of};

const PODS: &str = "/api/v1/namespaces/default/pods";
/// What makes a pod one that is not refused.
const PLAIN: &str = r#""containers":[{"name":"c","image":"i"}],"automountServiceAccountToken":false"#;

/// Numbered units with commas between them, as many as so many bytes hold.
fn listed(bytes: usize, unit: &str) -> String {
    let count = bytes / (unit.len() + 7);
    let units: Vec<String> = (0..count).map(|n| unit.replace('#', &n.to_string())).collect();
    units.join(",")
}

fn pod(name: &str, metadata: &str, spec: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}"{metadata}}},"spec":{{{spec}}}}}"#)
}

/// Keys of labels that are written into selectors with the values that the pod has.
#[test]
fn label_keys_are_cheap() {
    let mut run = Run::new();
    let spread = |keys: &str, expressions: &str| {
        format!(
            r#"{PLAIN},"topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"k","whenUnsatisfiable":"DoNotSchedule",
                "labelSelector":{{"matchExpressions":[{expressions}]}},"matchLabelKeys":[{keys}]}}]"#
        )
    };
    let value = format!(r#","labels":{{"a":"{}"}}"#, "v".repeat(MAX / 2));
    let same = vec![r#""a""#; MAX / 10].join(",");
    run.request(
        "a long label",
        ("POST", PODS),
        JSON,
        pod("p", &value, &spread(&same, "")),
    );
    let keys = listed(MAX / 3, r##""k#""##);
    let expressions = listed(MAX / 3, r##"{"key":"e#","operator":"Exists"}"##);
    run.request(
        "expressions",
        ("POST", PODS),
        JSON,
        pod("p", "", &spread(&keys, &expressions)),
    );
    let term = format!(
        r#"{PLAIN},"affinity":{{"podAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{{"topologyKey":"k",
            "labelSelector":{{}},"matchLabelKeys":[{keys}],"mismatchLabelKeys":[{}]}}]}}}}"#,
        listed(MAX / 3, r##""m#""##)
    );
    run.request("other keys", ("POST", PODS), JSON, pod("p", "", &term));
    run.finish();
}

/// One long key of a definition's schema with many mistakes below it, each of which is told with its path.
#[test]
fn mistakes_below_a_long_key_are_cheap() {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut run = Run::new();
    let key = "k".repeat(MAX / 2);
    let alternatives = listed(MAX / 12, r##"{"title":"t#"}"##);
    let rules = listed(MAX / 12, r##"{"message":"m#"}"##);
    let definitions = listed(MAX / 12, r##""d#":{"type":"t"}"##);
    for (name, schema) in [
        (
            "alternatives",
            format!(r#""oneOf":[{{"properties":{{"{key}":{{"anyOf":[{alternatives}]}}}}}}]"#),
        ),
        (
            "rules",
            format!(r#""properties":{{"{key}":{{"type":"string","x-kubernetes-validations":[{rules}]}}}}"#),
        ),
        (
            "definitions",
            format!(r#""properties":{{"{key}":{{"type":"object","definitions":{{{definitions}}}}}}}"#),
        ),
    ] {
        let body = format!(
            r#"{{"metadata":{{"name":"cogs.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced",
                "names":{{"plural":"cogs","kind":"Cog"}},"versions":[{{"name":"v1","served":true,"storage":true,
                "schema":{{"openAPIV3Schema":{{"type":"object",{schema}}}}}}}]}}}}"#
        );
        run.request(name, ("POST", DEFINITIONS), JSON, body);
    }
    run.finish();
}

/// What is written into each container: profiles in an annotation of those that share a name, mounts of a volume.
#[test]
fn what_each_container_gets_is_cheap() {
    let mut run = Run::new();
    let profile = format!("localhost/{}", "p".repeat(4_000));
    let annotation = format!(r#","annotations":{{"container.apparmor.security.beta.kubernetes.io/c":"{profile}"}}"#);
    let start = format!(r#"{{"metadata":{{"name":"p"{annotation}}},"spec":{{"containers":["#);
    for bytes in [MAX, MAX / 2, MAX / 8] {
        let one = r#"{"name":"c"},"#;
        let body = format!("{start}{}{{}}]}}}}", one.repeat((bytes - start.len() - 16) / one.len()));
        run.request("profiles", ("POST", PODS), JSON, body);
    }
    let volume = format!(r#""volumes":[{{"name":"kube-api-access-{}"}}]"#, "v".repeat(MAX / 2));
    for bytes in [MAX / 2, MAX / 8] {
        let containers = listed(bytes, r##"{"name":"c#"}"##);
        let spec = format!(r#""containers":[{containers}],{volume}"#);
        run.request("mounts", ("POST", PODS), JSON, pod("p", "", &spec));
    }
    run.finish();
}

/// What is checked beside what is stored.
#[test]
fn updates_of_what_is_large_are_cheap() {
    const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let mut run = Run::new();
    let policy = |first: &str| {
        let ranges = listed(MAX / 2, r##""fd00::#/128""##);
        format!(
            r#"{{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{{"name":"n"}},"spec":
                {{"podSelector":{{}},"ingress":[{{"from":[{{"ipBlock":{{"cidr":"::/0","except":["{first}",{ranges}]}}}}]}}]
                }}}}"#
        )
    };
    run.request("ranges", ("POST", POLICIES), JSON, policy("fd00::/16"));
    run.request(
        "of a policy",
        ("PUT", &format!("{POLICIES}/n")),
        JSON,
        policy("fd01::/16"),
    );
    let containers = listed(MAX / 6, r##"{"name":"c#","image":"i"}"##);
    let spec = format!(r#""containers":[{containers}],"automountServiceAccountToken":false"#);
    run.request("containers", ("POST", PODS), JSON, pod("p", "", &spec));
    let ended = r##"{"name":"c#","state":{"terminated":{"exitCode":0}}}"##;
    for (name, unit) in [
        ("ended", ended),
        ("running", r##"{"name":"c#","state":{"running":{}}}"##),
    ] {
        let statuses = listed(MAX / 3, unit);
        let status = format!(r#"{{"metadata":{{"name":"p"}},"status":{{"containerStatuses":[{statuses}]}}}}"#);
        let media_type = "application/merge-patch+json";
        run.request(name, ("PATCH", &format!("{PODS}/p/status")), media_type, status);
    }
    run.finish();
}

/// What plug-ins add of other objects.
#[test]
fn what_is_added_of_others_is_cheap() {
    const CLASSES: &str = "/apis/node.k8s.io/v1/runtimeclasses";
    const RANGES: &str = "/api/v1/namespaces/default/limitranges";
    let mut run = Run::new();
    let class =
        r#"{"metadata":{"name":"r"},"handler":"h","scheduling":{"tolerations":[{"operator":"Exists","key":"x"}]}}"#;
    run.request("a class", ("POST", CLASSES), JSON, class);
    let tolerations = listed(MAX - 1024, r##"{"key":"k#","operator":"Exists"}"##);
    let spec = format!(r#"{PLAIN},"runtimeClassName":"r","tolerations":[{tolerations}]"#);
    run.request("tolerations", ("POST", PODS), JSON, pod("t", "", &spec));
    let amounts = listed(MAX / 2, r##""example.com/r#":"1""##);
    for (name, field) in [("defaults", "default"), ("bounds", "max")] {
        let range = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"limits":[{{"type":"Container","{field}":{{{amounts}}}}}]}}}}"#
        );
        run.request(name, ("POST", RANGES), JSON, range);
        let containers = body_of(r#"{"metadata":{"name":"l"},"spec":{"containers":["#, "{},", "{}]}}");
        run.request(&format!("{name} of many containers"), ("POST", PODS), JSON, containers);
        let containers = listed(MAX / 3, r##"{"name":"c#","image":"i"}"##);
        let spec = format!(r#""containers":[{containers}],"automountServiceAccountToken":false"#);
        run.request(
            &format!("{name} of containers"),
            ("POST", PODS),
            JSON,
            pod("l", "", &spec),
        );
        run.server.send("DELETE", &format!("{RANGES}/{name}"), JSON, "");
    }
    run.finish();
}
