//! Registrations of API groups and versions: those that this server serves itself are there at once.

use keelson_api::apiregistration_k8s_io::v1::{APIService, APIServiceCondition};
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::typed::keep_metadata;

const AVAILABLE: &str = "Available";

/// Registers the rules of registrations.
pub fn register(code: &mut KindCode) {
    code.kind::<APIService>()
        .strategy(ApiServiceStrategy)
        .cells(cells::admission::API_SERVICE);
}

/// The rules of registrations.
struct ApiServiceStrategy;

impl Strategy for ApiServiceStrategy {
    type Object = APIService;

    fn prepare_for_create(&self, context: &Context, o: &mut APIService) {
        if o.spec.service.is_none() && !o.status.conditions.iter().any(|c| c.r#type == AVAILABLE) {
            o.status.conditions.push(APIServiceCondition {
                r#type: AVAILABLE.to_owned(),
                status: "True".to_owned(),
                last_transition_time: context.now.truncate_to_seconds(),
                reason: "Local".to_owned(),
                message: "Local APIServices are always available".to_owned(),
            });
        }
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut APIService, old: &APIService) {
        keep_metadata(new, old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, read};

    #[test]
    fn what_is_served_here_is_available() {
        for (spec, conditions) in [("{}", 1), (r#"{"service":{"name":"s"}}"#, 0)] {
            let mut o: APIService = read(&format!(r#"{{"spec":{spec}}}"#));
            ApiServiceStrategy.prepare_for_create(&context(), &mut o);
            assert_eq!(o.status.conditions.len(), conditions, "{spec}");
        }
    }
}
