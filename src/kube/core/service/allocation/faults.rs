//! Faults of allocation, as clients are told of them.

use keelson_api::core::v1::Service;
use keelson_machinery::field::text::quote;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::status::StatusError;

use super::super::addresses;
use super::super::ports::plan::{Place, Plan};
use super::super::ports::{self, Want};
use crate::typed::shown_texts;

/// 422 for a service.
pub fn invalid(service: &Service, errors: &ErrorList) -> StatusError {
    StatusError::invalid("", "Service", &service.metadata.name, errors)
}

/// 500 for a number that one protocol has twice.
///
/// # Errors
/// There is one.
pub fn repeated(plan: &Plan) -> Result<(), StatusError> {
    match &plan.repeated {
        Some(port) => {
            let text = format!("duplicate nodePort: {{{} {}}}", port.protocol, port.node_port);
            Err(StatusError::unknown(text))
        }
        None => Ok(()),
    }
}

/// Why there is no address: the one that is wanted, or "" any.
pub fn address_fault(service: &Service, wanted: &str, fault: addresses::Fault) -> StatusError {
    let name = quote(&service.metadata.name);
    match fault {
        addresses::Fault::Full if wanted.is_empty() => {
            let text = format!("failed to allocate a serviceIP for Service {name}: range is full");
            StatusError::internal_error(text)
        }
        // It is not the client's fault, and may be over soon.
        addresses::Fault::Failed(error) if error.code == 503 => error,
        fault => {
            let which = if wanted.is_empty() {
                String::new()
            } else {
                format!(" {wanted}")
            };
            let text = format!("failed to allocate IP{which}: {fault}");
            let path = Path::new("spec").child("clusterIPs");
            let errors = FieldError::invalid(&path, shown_texts(&service.spec.cluster_ips), text).into();
            invalid(service, &errors)
        }
    }
}

/// Why the port at a place of the plan could not be taken.
pub fn port_fault(service: &Service, plan: &Plan, place: usize, fault: &ports::Fault) -> StatusError {
    let want = plan.batch.take.get(place).copied().unwrap_or(Want::Any);
    match (plan.places.get(place), want) {
        (Some(Place::Port(at)), Want::This(number)) => {
            let path = Path::new("spec").child("ports").index(*at).child("nodePort");
            invalid(service, &FieldError::invalid(&path, number, fault.to_string()).into())
        }
        (Some(Place::HealthCheck), Want::This(number)) => {
            let text = format!("failed to allocate requested HealthCheck NodePort {number}: {fault}");
            StatusError::internal_error(text)
        }
        (Some(Place::HealthCheck), Want::Any) => {
            StatusError::internal_error(format!("failed to allocate a HealthCheck NodePort 0: {fault}"))
        }
        _ => StatusError::internal_error(format!("failed to allocate a nodePort: {fault}")),
    }
}
