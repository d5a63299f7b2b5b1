//! ServiceAccount: a pod runs as an account of its namespace, with the account's pull secrets and a token that is
//! mounted where clients look for it.

mod mount;
mod secrets;

use std::sync::Arc;

use keelson_access::lister::Listers;
use keelson_api::core::v1::{Pod, ServiceAccount as Account};
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use keelson_registry::{Followed, Outcome, Verbs};

use super::lookup;

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
const EPHEMERAL: &str = "ephemeralcontainers";
const ACCOUNTS: (&str, &str) = ("", "serviceaccounts");

pub struct ServiceAccount {
    accounts: Followed<Account>,
}

impl Default for ServiceAccount {
    fn default() -> Self {
        ServiceAccount {
            accounts: Followed::new(|object| object.downcast_ref::<Account>().cloned()),
        }
    }
}

impl Plugin for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let is_pods = (scope.group, scope.plural) == ("", "pods");
        match (scope.operation, scope.subresource) {
            (Operation::Create, "") => Handles::BOTH.when(is_pods),
            (Operation::Update, EPHEMERAL) => Handles::VALIDATES.when(is_pods),
            _ => Handles::NOTHING,
        }
    }

    fn attach(&self, listers: &dyn Listers, _verbs: &Arc<Verbs>) {
        self.accounts.attach(listers, ACCOUNTS.0, ACCOUNTS.1);
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        match attributes.typed::<Pod>() {
            Some(pod) if is_mirror(pod) => now(mirror(attributes, pod)),
            Some(_) => {
                default_account(attributes);
                match self.known(attributes) {
                    Some(account) => now(give_and_check(attributes, &account)),
                    None => later(admit_unknown(attributes)),
                }
            }
            None => now(Ok(())),
        }
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        match attributes.typed::<Pod>() {
            Some(pod) if attributes.operation == Operation::Create && is_mirror(pod) => now(mirror(attributes, pod)),
            Some(pod) => match self.known(attributes) {
                Some(account) => now(check(attributes, pod, &account)),
                None => later(validate_unknown(attributes, pod)),
            },
            None => now(Ok(())),
        }
    }
}

impl ServiceAccount {
    /// The account of a pod, if memory has it.
    fn known(&self, attributes: &Attributes<'_>) -> Option<Arc<Account>> {
        let name = account_name(attributes);
        self.accounts.get(attributes.namespace(), name)
    }
}

/// "": the pod says none.
fn account_name<'a>(attributes: &'a Attributes<'_>) -> &'a str {
    let pod = attributes.typed::<Pod>();
    pod.map_or("", |pod| pod.spec.service_account_name.as_str())
}

fn is_mirror(pod: &Pod) -> bool {
    pod.metadata.annotations.contains_key(MIRROR)
}

/// A pod that only shows what runs on a node anyway needs nobody's rights.
fn mirror(attributes: &Attributes<'_>, pod: &Pod) -> Result<(), StatusError> {
    if !pod.spec.service_account_name.is_empty() {
        return Err(attributes.forbidden("a mirror pod may not reference service accounts"));
    }
    if secrets::are_referenced(&pod.spec) {
        return Err(attributes.forbidden("a mirror pod may not reference secrets"));
    }
    let projections = pod
        .spec
        .volumes
        .iter()
        .filter_map(|v| v.volume_source.projected.as_deref());
    let mut sources = projections.flat_map(|projected| &projected.sources);
    match sources.any(|source| source.service_account_token.is_some()) {
        true => Err(attributes.forbidden("a mirror pod may not use ServiceAccountToken volume projections")),
        false => Ok(()),
    }
}

fn default_account(attributes: &mut Attributes<'_>) {
    if let Some(pod) = attributes.typed_mut::<Pod>()
        && pod.spec.service_account_name.is_empty()
    {
        DEFAULT.clone_into(&mut pod.spec.service_account_name);
        // Its old name is shown too.
        DEFAULT.clone_into(&mut pod.spec.service_account);
    }
}

/// What memory has not got yet, the store may have.
async fn admit_unknown(attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
    let account = account(attributes, account_name(attributes)).await?;
    give_and_check(attributes, &account)
}

fn give_and_check(attributes: &mut Attributes<'_>, account: &Account) -> Result<(), StatusError> {
    let suffix = attributes.resource.backend.new_suffix();
    if let Some(pod) = attributes.typed_mut::<Pod>() {
        give(pod, account, &suffix);
    }
    match attributes.typed::<Pod>() {
        Some(pod) => check(attributes, pod, account),
        None => Ok(()),
    }
}

/// What a pod gets of its account.
fn give(pod: &mut Pod, account: &Account, suffix: &str) {
    let said = pod.spec.automount_service_account_token;
    if said.or(account.automount_service_account_token).unwrap_or(true) {
        mount::mount(&mut pod.spec, suffix);
    }
    if pod.spec.image_pull_secrets.is_empty() {
        pod.spec.image_pull_secrets.clone_from(&account.image_pull_secrets);
    }
}

async fn validate_unknown(attributes: &Attributes<'_>, pod: &Pod) -> Result<(), StatusError> {
    let name = &pod.spec.service_account_name;
    if name.is_empty() {
        let (namespace, name) = (attributes.namespace(), &pod.metadata.name);
        return Err(attributes.forbidden(format!("no service account specified for pod {namespace}/{name}")));
    }
    let account = account(attributes, name).await?;
    check(attributes, pod, &account)
}

async fn account(attributes: &Attributes<'_>, name: &str) -> Result<Account, StatusError> {
    let namespace = attributes.namespace();
    let found = match lookup::askable(name) {
        Ok(()) => lookup::find(attributes, ACCOUNTS, namespace, name).await,
        Err(error) => Err(error),
    };
    let found = found.and_then(|found| found.ok_or_else(|| StatusError::not_found("", "serviceaccount", name)));
    found.map_err(|error| {
        let why = format!("error looking up service account {namespace}/{name}: {}", error.message);
        attributes.forbidden(why)
    })
}

/// An account may say that its pods mount no secrets but its own.
fn check(attributes: &Attributes<'_>, pod: &Pod, account: &Account) -> Result<(), StatusError> {
    let said = account.metadata.annotations.get(ENFORCE);
    if !said.is_some_and(|said| is_true(said)) {
        return Ok(());
    }
    let is_ephemeral = attributes.subresource == EPHEMERAL;
    let fault = match is_ephemeral {
        true => secrets::fault_of_ephemeral(&pod.spec, account),
        false => secrets::fault(&pod.spec, account),
    };
    match fault {
        None => Ok(()),
        // As in kube-apiserver this is a refusal without a reason.
        Some(why) if is_ephemeral => Err(StatusError::unknown(why)),
        Some(why) => Err(attributes.forbidden(why)),
    }
}

/// As Go reads a boolean; what is none is false.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    #[test]
    fn a_pod_gets_what_its_account_has() {
        let account: Account = read(r#"{"imagePullSecrets":[{"name":"p"}]}"#);
        let silent: Account = read(r#"{"automountServiceAccountToken":false}"#);
        for (account, pod, mounts, secrets) in [
            (&account, r#"{"containers":[{"name":"c"}]}"#, true, "p"),
            (
                &account,
                r#"{"containers":[{"name":"c"}],"imagePullSecrets":[{"name":"own"}]}"#,
                true,
                "own",
            ),
            (
                &account,
                r#"{"containers":[{"name":"c"}],"automountServiceAccountToken":false}"#,
                false,
                "p",
            ),
            (&silent, r#"{"containers":[{"name":"c"}]}"#, false, ""),
            (
                &silent,
                r#"{"containers":[{"name":"c"}],"automountServiceAccountToken":true}"#,
                true,
                "",
            ),
        ] {
            let mut given: Pod = read(&format!(r#"{{"spec":{pod}}}"#));
            give(&mut given, account, "x");
            let found: Vec<&str> = given.spec.image_pull_secrets.iter().map(|s| s.name.as_str()).collect();
            assert_eq!(found.join(","), secrets, "{pod}");
            assert_eq!(text(&given.spec).contains("kube-api-access-x"), mounts, "{pod}");
        }
    }

    #[test]
    fn booleans_are_those_of_go() {
        assert!(["1", "t", "T", "true", "TRUE", "True"].into_iter().all(is_true));
        assert!(!["0", "yes", "tRUE", "", " true"].into_iter().any(is_true));
    }
}
