//! The secrets that a pod refers to, and those that its service account lets it mount.

use keelson_api::core::v1::{EnvFromSource, EnvVar, PodSpec, ServiceAccount};

use crate::core::node_graph;

/// Whether a pod refers to any secret, wherever it does.
pub fn are_referenced(spec: &PodSpec) -> bool {
    node_graph::names_secrets(spec)
}

/// Why a pod may not be made with its account.
pub fn fault(spec: &PodSpec, account: &ServiceAccount) -> Option<String> {
    let of = &account.metadata.name;
    let volumes = spec
        .volumes
        .iter()
        .filter_map(|volume| volume.volume_source.secret.as_deref());
    let forbidden = volumes
        .map(|secret| &secret.secret_name)
        .find(|name| !mounts(account, name));
    if let Some(name) = forbidden {
        let what = format!("volume with secret.secretName=\"{name}\"");
        return Some(refused(&what, of));
    }
    let lists = [
        ("init container", &spec.init_containers),
        ("container", &spec.containers),
    ];
    for (what, containers) in lists {
        let mut faults = containers
            .iter()
            .filter_map(|c| of_container(what, (&c.name, &c.env, &c.env_from), account));
        if let Some(fault) = faults.next() {
            return Some(fault);
        }
    }
    let mut pulls = spec.image_pull_secrets.iter().enumerate();
    let forbidden = pulls.find(|(_, pull)| account.image_pull_secrets.iter().all(|own| own.name != pull.name));
    let (place, pull) = forbidden?;
    let name = &pull.name;
    Some(format!(
        "imagePullSecrets[{place}].name=\"{name}\" is not allowed because service account {of} does not reference that \
         imagePullSecret"
    ))
}

/// The same of containers that are added to it.
pub fn fault_of_ephemeral(spec: &PodSpec, account: &ServiceAccount) -> Option<String> {
    let containers = spec.ephemeral_containers.iter().map(|c| &c.ephemeral_container_common);
    let mut faults =
        containers.filter_map(|c| of_container("ephemeral container", (&c.name, &c.env, &c.env_from), account));
    faults.next()
}

fn mounts(account: &ServiceAccount, secret: &str) -> bool {
    account.secrets.iter().any(|own| own.name == secret)
}

fn refused(what: &str, account: &str) -> String {
    format!("{what} is not allowed because service account {account} does not reference that secret")
}

fn of_container(
    what: &str,
    (name, env, env_from): (&str, &[EnvVar], &[EnvFromSource]),
    account: &ServiceAccount,
) -> Option<String> {
    let of = &account.metadata.name;
    for variable in env {
        let source = variable
            .value_from
            .as_deref()
            .and_then(|from| from.secret_key_ref.as_deref());
        let Some(secret) = source.map(|key| &key.local_object_reference.name) else {
            continue;
        };
        if !mounts(account, secret) {
            let variable = &variable.name;
            let what = format!("{what} {name} with envVar {variable} referencing secret.secretName=\"{secret}\"");
            return Some(refused(&what, of));
        }
    }
    let sources = env_from.iter().filter_map(|from| from.secret_ref.as_deref());
    let mut secrets = sources.map(|source| &source.local_object_reference.name);
    let secret = secrets.find(|secret| !mounts(account, secret))?;
    let what = format!("{what} {name} with envFrom referencing secret.secretName=\"{secret}\"");
    Some(refused(&what, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    const ALLOWED: &str =
        r#"{"metadata":{"name":"sa"},"secrets":[{"name":"own"}],"imagePullSecrets":[{"name":"pull"}]}"#;

    #[test]
    fn secrets_are_those_of_the_account() {
        let account: ServiceAccount = read(ALLOWED);
        for (spec, expected) in [
            (r#"{"volumes":[{"name":"v","secret":{"secretName":"own"}}]}"#, ""),
            (
                r#"{"volumes":[{"name":"v","secret":{"secretName":"x"}}]}"#,
                "volume with secret.secretName=\"x\"",
            ),
            (
                r#"{"initContainers":[{"name":"i","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"x"}}}]}]}"#,
                "init container i with envVar E referencing secret.secretName=\"x\"",
            ),
            (
                r#"{"containers":[{"name":"c","envFrom":[{"secretRef":{"name":"own"}},{"secretRef":{"name":"x"}}]}]}"#,
                "container c with envFrom referencing secret.secretName=\"x\"",
            ),
            (
                r#"{"ephemeralContainers":[{"name":"e","envFrom":[{"secretRef":{"name":"x"}}]}]}"#,
                "",
            ),
        ] {
            let fault = fault(&read(spec), &account);
            let expected = (!expected.is_empty()).then(|| refused(expected, "sa"));
            assert_eq!(fault, expected, "{spec}");
        }
        let spec = read(r#"{"imagePullSecrets":[{"name":"pull"},{"name":"own"}]}"#);
        assert_eq!(
            fault(&spec, &account).unwrap(),
            "imagePullSecrets[1].name=\"own\" is not allowed because service account sa does not reference that \
             imagePullSecret"
        );
        let spec = read(r#"{"ephemeralContainers":[{"name":"e","envFrom":[{"secretRef":{"name":"x"}}]}]}"#);
        let expected = "ephemeral container e with envFrom referencing secret.secretName=\"x\"";
        assert_eq!(fault_of_ephemeral(&spec, &account), Some(refused(expected, "sa")));
    }
}
