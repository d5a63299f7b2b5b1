//! DenyServiceExternalIPs: no service takes addresses of others; those that it had it may keep.

use keelson_api::core::v1::Service;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::now;

pub struct DenyServiceExternalIPs;

impl Plugin for DenyServiceExternalIPs {
    fn name(&self) -> &'static str {
        "DenyServiceExternalIPs"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        Handles::VALIDATES.when(writes && scope.is("", "services"))
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let service = attributes.typed::<Service>();
        now(
            match service.is_some_and(|new| takes_more(new, attributes.old_typed())) {
                true => Err(attributes.forbidden("Use of external IPs is denied by admission control")),
                false => Ok(()),
            },
        )
    }
}

/// Whether a service takes an address that it did not have.
fn takes_more(new: &Service, old: Option<&Service>) -> bool {
    let had: &[String] = old.map_or(&[], |old| &old.spec.external_ips);
    !new.spec.external_ips.iter().all(|address| had.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    /// security: CVE-2020-8554.
    #[test]
    fn a_service_keeps_the_addresses_that_it_had_and_takes_no_others() {
        let service = |addresses: &str| read::<Service>(&format!(r#"{{"spec":{{"externalIPs":[{addresses}]}}}}"#));
        let old = service(r#""1.2.3.4","5.6.7.8""#);
        for (new, from_nothing, from_old) in [
            ("", false, false),
            (r#""1.2.3.4""#, true, false),
            (r#""5.6.7.8","1.2.3.4""#, true, false),
            (r#""1.2.3.4","9.9.9.9""#, true, true),
        ] {
            let new = service(new);
            assert_eq!(takes_more(&new, None), from_nothing, "{:?}", new.spec.external_ips);
            assert_eq!(takes_more(&new, Some(&old)), from_old, "{:?}", new.spec.external_ips);
        }
    }
}
