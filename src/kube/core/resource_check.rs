//! Checks of resources: of their names where containers, pods and quotas name them, and of their amounts.

use keelson_machinery::quantity::Quantity;
use keelson_machinery::validation::labels;

use super::resource_name::{REQUESTS, is_extended, is_huge_pages, is_native};
use crate::faults::Faults;

const HUGE_PAGES: &str = "hugepages-";
/// What containers may ask for.
const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What quotas may bound.
const QUOTA: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
/// What is counted in whole numbers.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_quota_huge_pages(name: &str) -> bool {
    is_huge_pages(name.strip_prefix(REQUESTS).unwrap_or(name))
}

/// Whether more of it may be promised than there is.
pub fn may_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// The name of a resource, of whatever.
pub fn any(f: &mut Faults<'_>, name: &str) {
    let texts = labels::qualified_name(name);
    let is_known = name.contains('/') || name == "storage" || is_of_quota(name);
    if texts.is_empty() && !is_known {
        f.invalid(name, "must be a standard resource type or fully qualified");
    }
    f.texts(name, texts);
}

/// The name of a resource that a container asks for.
pub fn of_container(f: &mut Faults<'_>, name: &str) {
    any(f, name);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !is_huge_pages(name) {
            f.invalid(name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        f.invalid(name, "doesn't follow extended resource name standard");
    }
}

/// The name of a resource that a whole pod asks for.
pub fn of_pod(f: &mut Faults<'_>, name: &str) {
    let before = f.count();
    any(f, name);
    if f.count() == before && !matches!(name, "cpu" | "memory") && !is_huge_pages(name) {
        f.not_supported(name, &["cpu", HUGE_PAGES, "memory"]);
    }
}

/// Whether a quota can bound the resource by a name without a domain.
pub fn is_of_quota(name: &str) -> bool {
    QUOTA.contains(&name) || is_quota_huge_pages(name)
}

/// The name of a resource that a quota bounds.
pub fn of_quota(f: &mut Faults<'_>, name: &str) {
    any(f, name);
    if !name.contains('/') && !is_of_quota(name) {
        f.invalid(name, "must be a standard resource for quota");
    }
}

/// An amount of a resource: not below 0, and whole where the resource is counted.
pub fn amount(f: &mut Faults<'_>, name: &str, amount: &Quantity) {
    f.amount(amount);
    if (COUNTED.contains(&name) || is_extended(name)) && amount.milli_value() % 1000 != 0 {
        f.invalid(amount.as_str(), "must be an integer");
    }
}

/// An amount of pages: so many whole ones.
pub fn huge_pages(f: &mut Faults<'_>, name: &str, amount: &Quantity) {
    if !is_whole_pages(name, amount) {
        let text = format!("{} is not positive integer multiple of {name}", amount.as_str());
        f.invalid(amount.as_str(), text);
    }
}

/// Whether an amount comes to whole pages of the size that their name tells.
pub fn is_whole_pages(name: &str, amount: &Quantity) -> bool {
    let size = Quantity::parse(name.strip_prefix(HUGE_PAGES).unwrap_or_default());
    let size = size.ok().filter(|size| !size.is_zero() && !size.is_negative());
    size.is_some_and(|size| size.milli_value() % 1000 == 0 && amount.value() % size.value() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::lines;

    #[test]
    fn names_are_known_or_have_a_domain() {
        type Check = fn(&mut Faults<'_>, &str);
        let told = |check: Check, name: &str| lines(&of_object(|f| check(f, name))).lines().count();
        for (name, in_any, in_container, in_pod, in_quota) in [
            ("cpu", 0, 0, 0, 0),
            ("hugepages-2Mi", 0, 0, 0, 0),
            ("requests.hugepages-2Mi", 0, 1, 1, 0),
            ("storage", 0, 1, 1, 1),
            ("pods", 0, 1, 1, 0),
            ("gold", 1, 2, 1, 2),
            ("a.b/gold", 0, 0, 1, 0),
            ("kubernetes.io/gold", 0, 0, 1, 0),
            ("requests.a.b/gold", 0, 1, 1, 0),
            ("a b", 1, 2, 1, 2),
        ] {
            let found = [
                told(any, name),
                told(of_container, name),
                told(of_pod, name),
                told(of_quota, name),
            ];
            assert_eq!(found, [in_any, in_container, in_pod, in_quota], "{name}");
        }
    }

    #[test]
    fn amounts_of_pages_are_whole() {
        for (name, of, is_whole) in [
            ("hugepages-2Mi", "4Mi", true),
            ("hugepages-2Mi", "3Mi", false),
            ("hugepages-0", "0", false),
            ("hugepages-x", "1", false),
        ] {
            assert_eq!(is_whole_pages(name, &Quantity::parse(of).unwrap()), is_whole, "{name}");
        }
    }
}
