//! Files, and what kube-apiserver says of them.

use super::*;

/// A configuration with one webhook. `{file}` is a kubeconfig file that is there; each change replaces a text.
fn webhook(file: &str, changes: &[(&str, &str)]) -> String {
    let mut text = "apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: hook
  webhook:
    timeout: 3s
    authorizedTTL: 1m
    unauthorizedTTL: 30s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: {file}}
    matchConditions: []
"
    .replace("{file}", file);
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

fn list(authorizers: &str) -> String {
    format!("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: {authorizers}\n")
}

fn error(text: &str) -> String {
    AuthorizationConfiguration::read(text.as_bytes())
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

#[test]
fn files_say_who_is_asked_and_how() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let conditions = (
        "matchConditions: []",
        "matchConditions: [{expression: has(request.resourceAttributes)}]",
    );
    let text = webhook(path, &[conditions]) + "- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n";
    let read = AuthorizationConfiguration::read(text.as_bytes()).unwrap();
    let kinds: Vec<AuthorizerKind> = read.authorizers.iter().map(|one| one.kind).collect();
    assert_eq!(
        kinds,
        [AuthorizerKind::Webhook, AuthorizerKind::Node, AuthorizerKind::Rbac]
    );
    let webhook = read.authorizers[0].webhook.as_ref().unwrap();
    assert_eq!(
        (webhook.timeout, webhook.authorized_ttl, webhook.unauthorized_ttl),
        (Duration::from_secs(3), Duration::from_secs(60), Duration::from_secs(30))
    );
    assert!(!webhook.conditions.is_empty());
    assert_eq!(webhook.connection, Connection::Kubeconfig(path.into()));
}

#[test]
fn what_is_left_out_has_defaults() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let ttls = (
        "    authorizedTTL: 1m\n    unauthorizedTTL: 30s\n",
        "    cacheUnauthorizedRequests: false\n",
    );
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let version = format!("apiserver.config.k8s.io/{version}\n");
        let text = webhook(path, &[ttls, ("apiserver.config.k8s.io/v1\n", &version)]);
        let read = AuthorizationConfiguration::read(text.as_bytes()).unwrap();
        let webhook = read.authorizers[0].webhook.as_ref().unwrap();
        assert_eq!(
            (webhook.authorized_ttl, webhook.unauthorized_ttl),
            (AUTHORIZED_TTL, Duration::ZERO)
        );
    }
}

#[test]
fn wrong_fields_are_told_as_kube_apiserver_tells_them() {
    let one = |text: &str| list(&format!("[{text}]"));
    for (text, want) in [
        (
            list("[]"),
            "authorizers: Required value: at least one authorization mode must be defined",
        ),
        (
            String::new(),
            "authorizers: Required value: at least one authorization mode must be defined",
        ),
        (one("{}"), "authorizers[0].type: Required value"),
        (
            one("{type: Foo, name: a}"),
            "authorizers[0].type: Unsupported value: \"Foo\": supported values: \"ABAC\", \"AlwaysAllow\", \
             \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"",
        ),
        (one("{type: RBAC}"), "authorizers[0].name: Required value"),
        (
            one("{type: RBAC, name: a}"),
            "expected name rbac for authorizer RBAC instead of a",
        ),
        (
            one("{type: RBAC, name: a}, {type: RBAC, name: b}"),
            "authorizers[1].type: Duplicate value: \"RBAC\"",
        ),
        (
            one("{type: RBAC, name: a}, {type: Node, name: a}"),
            "authorizers[1].name: Duplicate value: \"a\"",
        ),
        (
            one("{type: RBAC, name: a, webhook: {}}"),
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook",
        ),
        (
            one("{type: Webhook, name: a}"),
            "authorizers[0].webhook: Required value: required when type=Webhook",
        ),
        (
            one("{type: Webhook, name: a, webhook: {}}"),
            "[authorizers[0].timeout: Required value, authorizers[0].subjectAccessReviewVersion: Required value, \
             authorizers[0].failurePolicy: Required value, authorizers[0].connectionInfo.type: Required value]",
        ),
        (
            list("{}"),
            "failed to load AuthorizationConfiguration from file: json: cannot unmarshal object into Go struct field \
             AuthorizationConfiguration.authorizers of type []v1.AuthorizerConfiguration",
        ),
        (
            one("{type: RBAC, name: true}"),
            "failed to load AuthorizationConfiguration from file: json: cannot unmarshal bool into Go struct field \
             AuthorizerConfiguration.authorizers.name of type string",
        ),
        (
            list("[]\nmore: 1"),
            "failed to load AuthorizationConfiguration from file: strict decoding error: unknown field \"more\"",
        ),
        (
            "kind: AuthorizationConfiguration\n".to_owned(),
            "failed to load AuthorizationConfiguration from file: Object 'apiVersion' is missing in 'kind: \
             AuthorizationConfiguration\n'",
        ),
        (
            "apiVersion: apiserver.config.k8s.io/v9\nkind: AuthorizationConfiguration\n".to_owned(),
            "failed to load AuthorizationConfiguration from file: no kind \"AuthorizationConfiguration\" is registered \
             for version \"apiserver.config.k8s.io/v9\"",
        ),
    ] {
        assert_eq!(error(&text), want, "{text}");
    }
    assert!(error(&one("{type: Webhook, name: Bad_Name}")).contains(
        "authorizers[0].name: Invalid value: \"Bad_Name\": authorizer name is invalid: a lowercase RFC 1123 subdomain"
    ));
    assert!(error(&(list("[]") + "authorizers: []\n")).contains("key \"authorizers\" already set in map"));
}

#[test]
fn wrong_webhooks_are_told_as_kube_apiserver_tells_them() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let conditions = |text: &str| format!("matchConditions: {text}");
    let many: Vec<String> = (0..65).map(|n| format!("{{expression: 'true || {n} == 1'}}")).collect();
    for (from, to, want) in [
        (
            "timeout: 3s",
            "timeout: 60s".to_owned(),
            "timeout: Invalid value: \"1m0s\": must be > 0s and <= 30s".to_owned(),
        ),
        (
            "authorizedTTL: 1m",
            "authorizedTTL: -1s".to_owned(),
            "authorizedTTL: Invalid value: \"-1s\": must be > 0s".to_owned(),
        ),
        (
            "    subjectAccessReviewVersion: v1",
            "    subjectAccessReviewVersion: v3".to_owned(),
            "subjectAccessReviewVersion: Unsupported value: \"v3\": supported values: \"v1\", \"v1beta1\"".to_owned(),
        ),
        (
            "ConditionSubjectAccessReviewVersion: v1",
            "ConditionSubjectAccessReviewVersion: v3".to_owned(),
            "matchConditionSubjectAccessReviewVersion: Unsupported value: \"v3\": supported values: \"v1\"".to_owned(),
        ),
        (
            "NoOpinion",
            "Maybe".to_owned(),
            "failurePolicy: Unsupported value: \"Maybe\": supported values: \"NoOpinion\", \"Deny\"".to_owned(),
        ),
        (
            "KubeConfigFile,",
            "Foo,".to_owned(),
            format!(
                "connectionInfo.type: Unsupported value: {{\"Type\":\"Foo\",\"KubeConfigFile\":\"{path}\"}}: supported \
                 values: \"InClusterConfig\", \"KubeConfigFile\""
            ),
        ),
        (
            path,
            "a/b".to_owned(),
            "connectionInfo.kubeConfigFile: Invalid value: \"a/b\": must be an absolute path".to_owned(),
        ),
        (
            path,
            "/tmp".to_owned(),
            "connectionInfo.kubeConfigFile: Invalid value: \"/tmp\": must be a regular file".to_owned(),
        ),
        (
            path,
            "/no/file".to_owned(),
            "connectionInfo.kubeConfigFile: Invalid value: \"/no/file\": error loading file: stat /no/file: no such \
             file or directory"
                .to_owned(),
        ),
        (
            "KubeConfigFile,",
            "InClusterConfig,".to_owned(),
            format!(
                "connectionInfo.kubeConfigFile: Invalid value: \"{path}\": can only be set when type=KubeConfigFile"
            ),
        ),
        (
            "matchConditions: []",
            conditions("[{expression: ' '}]"),
            "matchConditions[0].expression: Required value".to_owned(),
        ),
        (
            "matchConditions: []",
            conditions("[{expression: 'true'}, {expression: 'true'}]"),
            "matchConditions[1].expression: Duplicate value: \"true\"".to_owned(),
        ),
        (
            "matchConditions: []",
            conditions("[{expression: request.user}]"),
            "matchConditions[0].expression: Invalid value: \"request.user\": must evaluate to bool but got string"
                .to_owned(),
        ),
        (
            "matchConditions: []",
            conditions("[{expression: request.foo}]"),
            "matchConditions[0].expression: Invalid value: \"request.foo\": compilation failed: ERROR: <input>:1:8: \
             undefined field 'foo'\n | request.foo\n | .......^"
                .to_owned(),
        ),
        (
            "matchConditions: []",
            conditions(&format!("[{}]", many.join(", "))),
            "matchConditions: Too many: 65: must have at most 64 items".to_owned(),
        ),
    ] {
        assert_eq!(
            error(&webhook(path, &[(from, &to)])),
            format!("authorizers[0].{want}"),
            "{to}"
        );
    }
    let unversioned = [
        ("    matchConditionSubjectAccessReviewVersion: v1\n", ""),
        ("matchConditions: []", "matchConditions: [{expression: 'true'}]"),
    ];
    assert_eq!(
        error(&webhook(path, &unversioned)),
        "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are \
         specified"
    );
    let unknown = (
        "matchConditions: []",
        "matchConditions: [{expression: 'true', name: x}]",
    );
    assert!(
        error(&webhook(path, &[unknown])).ends_with("unknown field \"authorizers[0].webhook.matchConditions[0].name\"")
    );
    let soon = ("timeout: 3s", "timeout: soon");
    assert!(error(&webhook(path, &[soon])).ends_with("time: invalid duration \"soon\""));
}
