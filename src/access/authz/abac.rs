//! Attribute-based access control: a file of policies, one JSON object a line.

use serde::Deserialize;

use super::{Answer, Authorizer, Decision, PathRule, ResourceRule, Rules};
use crate::request_info::RequestInfo;
use crate::user::{GROUP_AUTHENTICATED, User};

const API_VERSION: &str = "abac.authorization.kubernetes.io/v1beta1";
const KIND: &str = "Policy";

/// The policies of a file.
#[derive(Debug)]
pub struct Abac {
    policies: Vec<Policy>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    spec: Policy,
}

/// What one line allows. `*` is everything of its sort.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
struct Policy {
    user: String,
    group: String,
    readonly: bool,
    api_group: String,
    resource: String,
    namespace: String,
    non_resource_path: String,
}

/// A line that is no policy.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct PolicyError {
    /// From 1.
    pub line: usize,
    pub fault: PolicyFault,
}

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFault {
    /// No JSON, or values that do not fit their fields.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Another kind or version.
    #[error("expected apiVersion {API_VERSION:?} and kind {KIND:?}")]
    Kind,
}

impl Abac {
    /// Reads the text of a file. Empty lines and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// The first line that is no policy.
    pub fn parse(text: &str) -> Result<Abac, PolicyError> {
        let mut policies = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let policy = policy(line).map_err(|fault| PolicyError { line: number, fault })?;
            policies.push(policy);
        }
        Ok(Abac { policies })
    }
}

fn policy(line: &str) -> Result<Policy, PolicyFault> {
    let line: Line = serde_json::from_str(line)?;
    if (line.api_version.as_str(), line.kind.as_str()) != (API_VERSION, KIND) {
        return Err(PolicyFault::Kind);
    }
    let mut policy = line.spec;
    if policy.user == "*" || policy.group == "*" {
        policy.user.clear();
        GROUP_AUTHENTICATED.clone_into(&mut policy.group);
    }
    Ok(policy)
}

impl Policy {
    /// Whoever is named must fit; a policy that names nobody is for nobody.
    fn is_for(&self, user: &User) -> bool {
        let named = !self.user.is_empty() || !self.group.is_empty();
        named
            && (self.user.is_empty() || self.user == user.name)
            && (self.group.is_empty() || user.in_group(&self.group))
    }

    fn allows(&self, info: &RequestInfo) -> bool {
        let fits = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        if self.readonly && !matches!(info.verb.as_str(), "get" | "list" | "watch") {
            return false;
        }
        if !info.is_resource {
            let pattern = self.non_resource_path.as_str();
            return match pattern.strip_suffix('*') {
                Some(_) => info.path.starts_with(pattern.trim_end_matches('*')),
                None => pattern == info.path,
            };
        }
        fits(&self.namespace, &info.namespace)
            && fits(&self.resource, &info.resource)
            && fits(&self.api_group, &info.group)
    }

    fn verbs(&self) -> Vec<String> {
        let verbs: &[&str] = if self.readonly {
            &["get", "list", "watch"]
        } else {
            &["*"]
        };
        verbs.iter().map(|verb| (*verb).to_owned()).collect()
    }
}

impl Authorizer for Abac {
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        let allowed = self
            .policies
            .iter()
            .any(|policy| policy.is_for(user) && policy.allows(info));
        let decision = match allowed {
            true => Decision::Allow(String::new()),
            false => Decision::NoOpinion("No policy matched.".to_owned()),
        };
        decision.into()
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        let mut rules = Rules::default();
        let is_here = |policy: &&Policy| policy.namespace == "*" || policy.namespace == namespace;
        let policies = self.policies.iter().filter(|policy| policy.is_for(user));
        // Paths have no namespace, and yet kube-apiserver shows only those of policies that are for this one.
        for policy in policies.filter(is_here) {
            if !policy.resource.is_empty() {
                rules.resources.push(ResourceRule {
                    verbs: policy.verbs(),
                    groups: vec![policy.api_group.clone()],
                    resources: vec![policy.resource.clone()],
                    names: Vec::new(),
                });
            }
            if !policy.non_resource_path.is_empty() {
                rules.paths.push(PathRule {
                    verbs: policy.verbs(),
                    paths: vec![policy.non_resource_path.clone()],
                });
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_info::Query;

    fn line(spec: &str) -> String {
        format!(r#"{{"apiVersion":"{API_VERSION}","kind":"Policy","spec":{spec}}}"#)
    }

    fn user(name: &str, group: &str) -> User {
        User {
            name: name.into(),
            groups: vec![group.into()],
            ..User::default()
        }
    }

    fn allowed(abac: &Abac, user: &User, method: &str, path: &str) -> bool {
        let info = RequestInfo::parse(method, path, &Query::default()).unwrap();
        matches!(abac.authorize(user, &info), Answer::Now(Decision::Allow(_)))
    }

    #[test]
    fn policies_allow_what_they_name() {
        let lines = [
            "# comment".to_owned(),
            String::new(),
            line(r#"{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}"#),
            line(r#"{"user":"bob","namespace":"n","resource":"pods","readonly":true}"#),
            line(r#"{"group":"*","nonResourcePath":"/v*","readonly":true}"#),
            line(r#"{"user":"carol","group":"g","nonResourcePath":"*"}"#),
            line(r#"{"namespace":"*","resource":"*","apiGroup":"*"}"#),
        ];
        let abac = Abac::parse(&lines.join("\n")).unwrap();
        let cases = [
            ("alice", "", "PUT", "/apis/apps/v1/namespaces/n/deployments/d", true),
            ("alice", "", "GET", "/healthz", false),
            ("bob", "", "GET", "/api/v1/namespaces/n/pods/p/log", true),
            ("bob", "", "DELETE", "/api/v1/namespaces/n/pods/p", false),
            ("bob", "", "GET", "/api/v1/namespaces/m/pods", false),
            ("bob", "", "GET", "/apis/apps/v1/namespaces/n/pods", false),
            ("x", GROUP_AUTHENTICATED, "GET", "/version", true),
            ("x", "system:unauthenticated", "GET", "/version", false),
            ("x", GROUP_AUTHENTICATED, "POST", "/version", false),
            ("carol", "g", "POST", "/x", true),
            ("carol", "h", "POST", "/x", false),
        ];
        for (name, group, method, path, want) in cases {
            assert_eq!(
                allowed(&abac, &user(name, group), method, path),
                want,
                "{name} {group} {method} {path}"
            );
        }
    }

    /// A star stands alone or, in a path, at the end; a policy of one sort says nothing of the other.
    #[test]
    fn policies_allow_no_more_than_they_name() {
        let lines = [
            line(r#"{"user":"path","nonResourcePath":"/api*"}"#),
            line(r#"{"user":"star","namespace":"n*","resource":"pod*","apiGroup":"*"}"#),
            line(r#"{"user":"cluster","resource":"nodes","apiGroup":""}"#),
            line(
                r#"{"user":"read","namespace":"*","resource":"*","apiGroup":"*","nonResourcePath":"*","readonly":true}"#,
            ),
            line(r#"{"group":"system:masters*","namespace":"*","resource":"*","apiGroup":"*"}"#),
            line(r#"{"user":" pad ","namespace":"*","resource":"*","apiGroup":"*"}"#),
        ];
        let abac = Abac::parse(&lines.join("\n")).unwrap();
        for (name, method, path, want) in [
            ("path", "GET", "/apix", true),
            ("path", "GET", "/api/v1/namespaces/n/pods", false),
            ("path", "GET", "/ap", false),
            ("star", "GET", "/api/v1/namespaces/n/pods", false),
            ("cluster", "GET", "/api/v1/nodes/a", true),
            ("cluster", "GET", "/api/v1/namespaces/n/nodes/a", false),
            ("read", "GET", "/api/v1/watch/pods", true),
            ("read", "DELETE", "/api/v1/namespaces/n/pods", false),
            ("read", "POST", "/api/v1/namespaces/n/pods/p/exec", false),
            ("read", "HEAD", "/metrics", false),
            ("masters", "GET", "/api/v1/pods", false),
            ("pad", "GET", "/api/v1/pods", false),
            ("", "GET", "/api/v1/pods", false),
        ] {
            assert_eq!(
                allowed(&abac, &user(name, "system:masters"), method, path),
                want,
                "{name} {method} {path}"
            );
        }
    }

    #[test]
    fn rules_are_those_of_the_namespace() {
        let abac = Abac::parse(&line(
            r#"{"user":"bob","namespace":"n","resource":"pods","readonly":true}"#,
        ))
        .unwrap();
        assert_eq!(
            abac.rules(&user("bob", ""), "n").resources[0].verbs,
            ["get", "list", "watch"]
        );
        assert_eq!(abac.rules(&user("bob", ""), "m"), Rules::default());
    }

    #[test]
    fn mistakes_name_their_line() {
        let error = |text: &str| Abac::parse(text).err().unwrap().to_string();
        assert!(error("\n{").starts_with("line 2: "));
        assert!(error(r#"{"user":"alice"}"#).contains("expected apiVersion"));
    }
}
