//! Names of resources: Kubernetes' own, and extended ones, which somebody else counts.

use keelson_machinery::validation::labels::qualified_name;

/// Prefix of what a quota counts of requests.
pub const REQUESTS: &str = "requests.";
const OWN_DOMAIN: &str = "kubernetes.io/";
const HUGE_PAGES: &str = "hugepages-";

/// Whether Kubernetes itself counts a resource.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(OWN_DOMAIN)
}

/// Whether somebody else does.
pub fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS) && qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}

/// Whether these are pages of memory.
pub fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_of_ones_own_makes_a_resource_extended() {
        for (name, native, extended) in [
            ("cpu", true, false),
            ("kubernetes.io/x", true, false),
            ("sub.kubernetes.io/x", true, false),
            ("example.com/gpu", false, true),
            ("requests.example.com/gpu", false, false),
            ("example.com/", false, false),
            ("example.com/-", false, false),
        ] {
            assert_eq!((is_native(name), is_extended(name)), (native, extended), "{name}");
        }
        assert!(is_huge_pages("hugepages-2Mi") && !is_huge_pages("pages"));
    }
}
