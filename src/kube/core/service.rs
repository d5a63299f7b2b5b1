//! Services: their rules, and what gives them addresses and node ports.

pub mod addresses;
mod allocation;
mod change;
mod defaults;
mod families;
pub mod ports;
pub mod repair;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod validate;
mod warnings;

use std::sync::Arc;

use keelson_api::core::v1::Service;
use keelson_machinery::field::ErrorList;
use keelson_registry::reservation::Reservation;
use keelson_registry::write::Part;
use keelson_registry::{Answer, Context, KindCode, Reserving, Strategy};

use super::subresources::proxy;
use crate::{ServiceOptions, cells, metadata};
use allocation::Allocators;
use families::{Families, Family};
use ports::PortRange;

/// Stands in place of the cluster address of a service without one.
const HEADLESS: &str = "None";
/// Who owns what is written in the course of a write of a service, in `managedFields`.
const MANAGER: &str = "kube-apiserver";

/// What gives services addresses and ports.
fn allocators(options: &ServiceOptions) -> Allocators {
    let families = Families {
        primary: options.ranges.first().map_or(Family::V4, |ip| Family::of(*ip)),
        both: options.ranges.len() > 1,
    };
    let (first, last) = options.node_ports;
    Allocators::new(families, PortRange { first, last })
}

/// Registers the rules of services.
pub fn register(code: &mut KindCode, options: &ServiceOptions) {
    code.kind::<Service>()
        .strategy(ServiceStrategy(Arc::new(allocators(options))))
        .defaults(defaults::defaults)
        .metadata_checks(metadata::CHANGE)
        .subresource("proxy", proxy::OfService)
        .cells(cells::service::SERVICE);
}

/// The rules of services.
struct ServiceStrategy(Arc<Allocators>);

impl Strategy for ServiceStrategy {
    type Object = Service;

    fn reserve<'a>(
        &'a self,
        context: &'a Context,
        write: Reserving<'a, Service>,
    ) -> Option<Answer<'a, Box<dyn Reservation>>> {
        if write.part != Part::Main {
            return None;
        }
        Some(match write.old {
            None => Box::pin(self.0.create(context, write.new)),
            Some(old) => Box::pin(self.0.update(context, write.new, old)),
        })
    }

    fn frees(&self, context: &Context, service: &Service) -> Option<Box<dyn Reservation>> {
        self.0.removal(context, service)
    }

    fn decorate(&self, service: &mut Service) {
        defaults::decorate(self.0.families, &mut service.spec);
    }

    fn warnings(&self, new: &Service, _old: Option<&Service>) -> Vec<String> {
        warnings::of_service(new)
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut Service, old: &Service) {
        change::drop_unneeded(new, old);
    }

    fn validate(&self, _context: &Context, new: &Service, old: Option<&Service>) -> ErrorList {
        match old {
            None => validate::of_new(new),
            Some(old) if defaults::is_complete(&old.spec) => validate::of_change(new, old),
            Some(old) => {
                let mut old = old.clone();
                self.decorate(&mut old);
                validate::of_change(new, &old)
            }
        }
    }

    fn validate_status_update(&self, context: &Context, new: &Service, old: &Service) -> ErrorList {
        let errors = validate::of_status(new, old);
        if errors.is_empty() {
            warnings::of_status(new).into_iter().for_each(|text| context.warn(text));
        }
        errors
    }
}
