//! Labels that a node may not set on itself.

use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, String>;

/// Labels of Kubernetes that nodes say of themselves.
const OWN: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
/// Domains whose labels are the nodes' own.
const OWN_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// The domain of labels that nodes never set.
const RESTRICTED: &str = "node-restriction.kubernetes.io";

/// Labels that differ and that a node may not change, sorted.
pub fn forbidden<'a>(new: &'a Labels, old: &'a Labels) -> Vec<&'a str> {
    let changed = |(key, value): &(&'a String, &String), other: &Labels| other.get(*key) != Some(*value);
    let added = new.iter().filter(|pair| changed(pair, old));
    let removed = old.iter().filter(|pair| changed(pair, new));
    let keys: BTreeSet<&str> = added.chain(removed).map(|(key, _)| key.as_str()).collect();
    keys.into_iter().filter(|key| is_forbidden(key)).collect()
}

fn is_forbidden(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_own = OWN.contains(&key) || OWN_DOMAINS.iter().any(|own| is_within(domain, own));
    let is_kubernetes = is_within(domain, "kubernetes.io") || is_within(domain, "k8s.io");
    is_within(domain, RESTRICTED) || (is_kubernetes && !is_own)
}

fn is_within(domain: &str, other: &str) -> bool {
    domain == other || domain.strip_suffix(other).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_say_what_they_are_and_not_what_they_are_for() {
        for (key, expected) in [
            ("a", false),
            ("example.com/a", false),
            ("kubernetes.io/hostname", false),
            ("topology.kubernetes.io/zone", false),
            ("kubelet.kubernetes.io/a", false),
            ("x.node.kubernetes.io/a", false),
            ("kubernetes.io/a", true),
            ("x.kubernetes.io/a", true),
            ("x.k8s.io/a", true),
            ("xk8s.io/a", false),
            ("node-restriction.kubernetes.io/a", true),
            ("x.node-restriction.kubernetes.io/a", true),
            ("node-role.kubernetes.io/master", true),
        ] {
            assert_eq!(is_forbidden(key), expected, "{key}");
        }
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let old = labels(&[
            ("kubernetes.io/a", "1"),
            ("kubernetes.io/b", "1"),
            ("kubernetes.io/c", "1"),
        ]);
        let new = labels(&[
            ("kubernetes.io/a", "1"),
            ("kubernetes.io/b", "2"),
            ("kubernetes.io/d", "1"),
            ("x", "1"),
        ]);
        assert_eq!(
            forbidden(&new, &old),
            ["kubernetes.io/b", "kubernetes.io/c", "kubernetes.io/d"]
        );
    }
}
