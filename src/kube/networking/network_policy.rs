//! Network policies.

use keelson_api::networking_k8s_io::v1::NetworkPolicy;
use keelson_registry::KindCode;

use crate::cells;
use crate::metadata;

const INGRESS: &str = "Ingress";
const EGRESS: &str = "Egress";

/// Registers the rules of network policies.
pub fn register(code: &mut KindCode) {
    code.kind::<NetworkPolicy>()
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::networking::NETWORK_POLICY);
}

/// Defaults in code of network policies: a policy is always about what comes in, and about what goes out if it has
/// rules for that.
fn defaults(o: &mut NetworkPolicy) {
    let spec = &mut o.spec;
    if spec.policy_types.is_empty() {
        spec.policy_types.push(INGRESS.to_owned());
        if !spec.egress.is_empty() {
            spec.policy_types.push(EGRESS.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn types_follow_the_rules() {
        for (spec, expected) in [
            ("{}", vec![INGRESS]),
            (r#"{"egress":[]}"#, vec![INGRESS]),
            (r#"{"egress":[{}]}"#, vec![INGRESS, EGRESS]),
            (r#"{"policyTypes":["Egress"],"ingress":[{}]}"#, vec![EGRESS]),
        ] {
            let mut o: NetworkPolicy = read(&format!(r#"{{"spec":{spec}}}"#));
            defaults(&mut o);
            assert_eq!(o.spec.policy_types, expected, "{spec}");
        }
    }
}
