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
        let had: &[String] = attributes
            .old_typed::<Service>()
            .map_or(&[], |old| &old.spec.external_ips);
        let service = attributes.typed::<Service>();
        let mut asked = service.into_iter().flat_map(|service| &service.spec.external_ips);
        now(match asked.all(|address| had.contains(address)) {
            true => Ok(()),
            false => Err(attributes.forbidden("Use of external IPs is denied by admission control")),
        })
    }
}
