//! kubectl, with every resource that there is.

use crate::kubectl::Kubectl;
use crate::support::{Server, keelson};

/// One object or another of many kinds; all names begin with `every` or, of a custom resource, hold it.
const OBJECTS: &str = include_str!("everything.yaml");

/// Name, version and kind of each line of `api-resources`, whose short names may be missing.
fn resources(listed: &str) -> Vec<(&str, &str, &str)> {
    let of_line = |line| {
        let words: Vec<&str> = str::split_whitespace(line).collect();
        match words[..] {
            [name, .., version, _, kind] => (name, version, kind),
            _ => panic!("{line}"),
        }
    };
    listed.lines().map(of_line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_explained_and_listed() {
    let server = Server::start(
        keelson(),
        &["--storage-backend=memory", "--runtime-config=api/all=true"],
    )
    .await;
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let listed = kubectl.ok("api-resources --no-headers");
    let resources = resources(&listed);
    assert!(resources.len() > 70, "{listed}");
    for (name, version, kind) in resources {
        let explained = kubectl.ok(&format!("explain --recursive {name} --api-version={version}"));
        let begins = explained.lines().any(|l| l.split_whitespace().eq(["KIND:", kind]));
        let fields = explained.lines().skip_while(|l| *l != "FIELDS:").count();
        assert!(begins && fields > 3, "{name} {version}: {explained}");
    }

    kubectl.write("everything.yaml", OBJECTS);
    let created = kubectl.ok("create -f everything.yaml");
    let listable = kubectl.ok("api-resources --verbs=list -o name");
    let listable: Vec<&str> = listable.lines().collect();
    let shown = kubectl.ok(&format!("get {} -A", listable.join(",")));
    // Of an event the columns say what it is about, and not its name.
    for line in created.lines().filter(|l| !l.starts_with("event.")) {
        let name = line.trim_end_matches(" created");
        assert!(shown.contains(name), "{name} is not in {shown}");
    }
    // The names that most people type.
    let all = kubectl.ok("get all -n every");
    for name in [
        "pod/every-pod",
        "service/every-service",
        "statefulset.apps/every-set",
        "job.batch/every-job",
    ] {
        assert!(all.contains(name), "{name} is not in {all}");
    }
}
