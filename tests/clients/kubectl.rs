//! kubectl, through what a person does with it, on each of the three stores.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{Etcd, Server, keelson, tool, widgets};

/// kubectl with a server's kubeconfig and a home of its own.
pub struct Kubectl<'a> {
    program: PathBuf,
    server: &'a Server,
}

impl<'a> Kubectl<'a> {
    /// `None` where the machine has no kubectl.
    pub fn of(server: &'a Server) -> Option<Kubectl<'a>> {
        let program = tool("kubectl", "KEELSON_KUBECTL")?;
        Some(Kubectl { program, server })
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments.split_whitespace())
            .env("KUBECONFIG", &self.server.kubeconfig)
            .env("HOME", self.server.folder())
            .current_dir(self.server.folder());
        command
    }

    fn run(&self, arguments: &str, variables: &[(&str, &str)]) -> Output {
        self.command(arguments)
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// Runs it; it must succeed. Answers with what it printed.
    pub fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments, &[]);
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(
            output.status.success(),
            "kubectl {arguments}: {out}{err}\n{}",
            self.server.log()
        );
        out
    }

    /// Runs it; it must fail. Answers with what it complained about.
    fn fails(&self, arguments: &str) -> String {
        let output = self.run(arguments, &[]);
        assert!(!output.status.success(), "kubectl {arguments}: {}", text(output.stdout));
        text(output.stderr)
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.server.folder().join(name), content).unwrap();
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// What the walk does with one kind.
struct Subject {
    resource: &'static str,
    name: &'static str,
    file: &'static str,
    manifest: &'static str,
    /// Header of `get` and of `get -o wide`.
    header: &'static str,
    wide: &'static str,
    /// A `sed` expression that an editor applies, and the JSONPath and value that prove it.
    edit: (&'static str, &'static str, &'static str),
    /// A field for `explain`, and a part of what it says.
    explain: (&'static str, &'static str),
    /// A JSONPath of the replicas, if the kind can be scaled.
    replicas: Option<&'static str>,
}

const CONFIG_MAP: Subject = Subject {
    resource: "configmap",
    name: "settings",
    file: "configmap.yaml",
    manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  color: blue\n",
    header: "NAME DATA AGE",
    wide: "NAME DATA AGE",
    edit: ("s/color: blue/color: red/", "{.data.color}", "red"),
    explain: ("data", "<map[string]string>"),
    replicas: None,
};

const DEPLOYMENT: Subject = Subject {
    resource: "deployment",
    name: "web",
    file: "deployment.yaml",
    manifest: "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  selector:\n    matchLabels: {app: web}\n  \
               template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n      - name: web\n        \
               image: web:1\n",
    header: "NAME READY UP-TO-DATE AVAILABLE AGE",
    wide: "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR",
    edit: (
        "s/image: web:1/image: web:2/",
        "{.spec.template.spec.containers[0].image}",
        "web:2",
    ),
    explain: ("spec.replicas", "<integer>"),
    replicas: Some("{.spec.replicas}"),
};

const WIDGET: Subject = Subject {
    resource: "widget",
    name: "gear",
    file: "widget.yaml",
    manifest: include_str!("../../examples/widgets/widget.yaml"),
    header: "NAME SIZE COLOR REPLICAS AGE",
    wide: "NAME SIZE COLOR REPLICAS OWNER AGE",
    edit: ("s/color: Blue/color: Red/", "{.spec.color}", "Red"),
    explain: ("spec.color", "One of Red, Green and Blue."),
    replicas: Some("{.spec.replicas}"),
};

/// A kind that a definition brings.
const GADGET: Subject = Subject {
    resource: "gadget",
    name: "dial",
    file: "gadget.yaml",
    manifest: "apiVersion: stable.example.com/v1\nkind: Gadget\nmetadata:\n  name: dial\nspec:\n  color: Blue\n  \
               replicas: 1\n  parts:\n  - name: knob\n    count: 2\n",
    header: "NAME COLOR AGE",
    wide: "NAME COLOR PARTS AGE",
    edit: ("s/color: Blue/color: Red/", "{.spec.color}", "Red"),
    explain: ("spec.color", "What it is painted with."),
    replicas: Some("{.spec.replicas}"),
};

const GADGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.stable.example.com
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, shortNames: [gd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Color, type: string, jsonPath: .spec.color}
    - {name: Parts, type: string, jsonPath: ".spec.parts[*].name", priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    selectableFields:
    - jsonPath: .spec.color
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [color]
            properties:
              color: {type: string, enum: [Red, Green, Blue], description: What it is painted with.}
              replicas: {type: integer, minimum: 0, default: 1}
              parts:
                type: array
                maxItems: 9
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, count: {type: integer}}
                x-kubernetes-validations:
                - {rule: "self.all(p, !has(p.count) || p.count < 100)", message: a part is there too often}
          status:
            type: object
            properties:
              replicas: {type: integer}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
"#;

/// Words of the first line.
fn header(output: &str) -> String {
    output
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn walk(kubectl: &Kubectl<'_>, subject: &Subject) {
    let Subject {
        resource, name, file, ..
    } = *subject;
    kubectl.write(file, subject.manifest);
    let path = |path: &str| kubectl.ok(&format!("get {resource} {name} -o jsonpath={path}"));

    let resources = kubectl.ok("api-resources");
    assert!(
        resources.lines().any(|line| line.starts_with(&format!("{resource}s "))),
        "{resources}"
    );
    assert!(
        kubectl
            .ok(&format!("create -f {file}"))
            .contains(&format!("/{name} created"))
    );
    assert!(kubectl.fails(&format!("create -f {file}")).contains("AlreadyExists"));
    kubectl.ok(&format!("delete {resource} {name}"));
    assert!(kubectl.ok(&format!("apply -f {file}")).contains("created"));
    assert!(kubectl.ok(&format!("apply -f {file}")).contains("unchanged"));

    assert_eq!(header(&kubectl.ok(&format!("get {resource}"))), subject.header);
    assert_eq!(header(&kubectl.ok(&format!("get {resource} -o wide"))), subject.wide);
    assert!(
        kubectl
            .ok(&format!("get {resource} {name} -o yaml"))
            .contains(&format!("name: {name}\n"))
    );
    assert!(kubectl.ok(&format!("describe {resource} {name}")).contains(name));

    assert!(
        kubectl
            .ok(&format!("label {resource} {name} team=blue"))
            .contains("labeled")
    );
    assert!(
        kubectl
            .ok(&format!("get {resource} -l team=blue -o name"))
            .contains(name)
    );
    assert_eq!(kubectl.ok(&format!("get {resource} -l team=red -o name")), "");
    assert!(
        kubectl
            .ok(&format!("get {resource} --field-selector metadata.name={name} -o name"))
            .contains(name)
    );

    edit(kubectl, subject);
    assert_eq!(path(subject.edit.1), subject.edit.2);
    if let Some(replicas) = subject.replicas {
        assert!(
            kubectl
                .ok(&format!("scale {resource} {name} --replicas=4"))
                .contains("scaled")
        );
        assert_eq!(path(replicas), "4");
    }
    let (field, says) = subject.explain;
    let explained = kubectl.ok(&format!("explain {resource}.{field}"));
    assert!(explained.contains(says), "{explained}");

    watch(kubectl, subject);
    assert!(kubectl.fails(&format!("get {resource} {name}")).contains("NotFound"));
}

/// An editor that changes one line.
fn edit(kubectl: &Kubectl<'_>, subject: &Subject) {
    kubectl.write("editor.sh", &format!("sed -i '{}' \"$1\"\n", subject.edit.0));
    let arguments = format!("edit {} {}", subject.resource, subject.name);
    let output = kubectl.run(&arguments, &[("KUBE_EDITOR", "sh editor.sh")]);
    assert!(
        output.status.success() && text(output.stdout).contains("edited"),
        "{}",
        text(output.stderr)
    );
}

/// `get -w` sees the object and, once it has, its deletion, which `wait` waits for.
fn watch(kubectl: &Kubectl<'_>, subject: &Subject) {
    let Subject { resource, name, .. } = *subject;
    let mut watching = kubectl
        .command(&format!(
            "get {resource} {name} -w --output-watch-events --request-timeout=60s"
        ))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut events = lines
        .skip(1)
        .map(|line| line.unwrap().split_whitespace().next().unwrap_or("").to_owned());
    assert_eq!(events.next().as_deref(), Some("ADDED"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| kubectl.ok(&format!("wait {resource} {name} --for=delete --timeout=50s")));
        assert!(kubectl.ok(&format!("delete {resource} {name}")).contains("deleted"));
        waiting.join().unwrap();
    });
    assert_eq!(events.next().as_deref(), Some("DELETED"));
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// What kubectl does with custom objects beside the walk: both ways to apply, differences, patches, conditions.
fn changes(kubectl: &Kubectl<'_>) {
    let parts = || kubectl.ok("get gadget dial -o jsonpath={.spec.parts[*].name}");
    kubectl.write(GADGET.file, GADGET.manifest);
    assert!(
        kubectl
            .ok("apply --server-side -f gadget.yaml")
            .contains("serverside-applied")
    );
    assert!(kubectl.run("diff --server-side -f gadget.yaml", &[]).status.success());
    kubectl.write("red.yaml", &GADGET.manifest.replace("Blue", "Red"));
    let diff = kubectl.run("diff -f red.yaml", &[]);
    assert_eq!(diff.status.code(), Some(1), "{}", text(diff.stderr));
    assert!(text(diff.stdout).contains("+  color: Red"));
    let other = "apiVersion: stable.example.com/v1\nkind: Gadget\nmetadata:\n  name: dial\nspec:\n  color: Green\n  \
                 parts:\n  - name: hand\n";
    kubectl.write("other.yaml", other);
    let refused = kubectl.fails("apply --server-side --field-manager=other -f other.yaml");
    assert!(refused.contains("conflict with \"kubectl\": .spec.color"), "{refused}");
    kubectl.ok("apply --server-side --field-manager=other --force-conflicts -f other.yaml");
    assert_eq!(parts(), "knob hand");

    kubectl.ok(r#"patch gadget dial --type=merge -p {"spec":{"replicas":3}}"#);
    kubectl.ok(r#"patch gadget dial --type=json -p [{"op":"remove","path":"/spec/parts/0"}]"#);
    assert_eq!(parts(), "hand");
    let refused = kubectl.fails(r#"patch gadget dial -p {"spec":{"replicas":4}}"#);
    assert!(
        refused.contains("strategic-merge-patch+json is not supported"),
        "{refused}"
    );
    let refused = kubectl.fails(r#"patch gadget dial --type=merge -p {"spec":{"parts":[{"name":"a","count":100}]}}"#);
    assert!(refused.contains("a part is there too often"), "{refused}");
    let status = r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl.ok(&format!(
        "patch gadget dial --subresource=status --type=merge -p {status}"
    ));
    assert!(
        kubectl
            .ok("wait gadget dial --for=condition=Ready --timeout=20s")
            .contains("condition met")
    );
    assert!(
        kubectl
            .ok("get gd --field-selector spec.color=Green -o name")
            .contains("dial")
    );
    assert!(kubectl.ok("get all -o name").contains("gadget.stable.example.com/dial"));
    kubectl.ok("delete -f gadget.yaml");
    kubectl.ok("delete crd gadgets.stable.example.com --timeout=50s");
    assert!(
        kubectl
            .fails("get gadgets")
            .contains("could not find the requested resource")
    );
}

async fn custom_kind_on(flags: &[&str]) {
    let server = Server::start(keelson(), flags).await;
    let Some(kubectl) = Kubectl::of(&server) else { return };
    kubectl.write("definition.yaml", GADGETS);
    assert!(kubectl.ok("apply -f definition.yaml").contains("created"));
    assert!(kubectl.ok("apply -f definition.yaml").contains("unchanged"));
    kubectl.ok("wait crd gadgets.stable.example.com --for=condition=Established --timeout=50s");
    walk(&kubectl, &GADGET);
    changes(&kubectl);
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_kinds_on_the_memory_store() {
    custom_kind_on(&["--storage-backend=memory"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_kinds_on_the_embedded_store() {
    custom_kind_on(&["--storage-backend=embedded"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_kinds_on_etcd() {
    let Some(etcd) = Etcd::start() else { return };
    custom_kind_on(&[&format!("--etcd-servers={}", etcd.url)]).await;
}

async fn walk_on(program: &Path, subjects: &[Subject], flags: &[&str]) {
    let server = Server::start(program, flags).await;
    let Some(kubectl) = Kubectl::of(&server) else { return };
    assert!(kubectl.ok("version").contains("Server Version: v1.36"));
    for subject in subjects {
        walk(&kubectl, subject);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn builtin_kinds_on_the_memory_store() {
    walk_on(keelson(), &[CONFIG_MAP, DEPLOYMENT], &["--storage-backend=memory"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn builtin_kinds_on_the_embedded_store() {
    walk_on(keelson(), &[CONFIG_MAP, DEPLOYMENT], &["--storage-backend=embedded"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn builtin_kinds_on_etcd() {
    let Some(etcd) = Etcd::start() else { return };
    walk_on(
        keelson(),
        &[CONFIG_MAP, DEPLOYMENT],
        &[&format!("--etcd-servers={}", etcd.url)],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn widgets_on_the_memory_store() {
    walk_on(widgets(), &[WIDGET], &["--storage-backend=memory"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn widgets_on_the_embedded_store() {
    walk_on(widgets(), &[WIDGET], &["--storage-backend=embedded"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn widgets_on_etcd() {
    let Some(etcd) = Etcd::start() else { return };
    walk_on(widgets(), &[WIDGET], &[&format!("--etcd-servers={}", etcd.url)]).await;
}
