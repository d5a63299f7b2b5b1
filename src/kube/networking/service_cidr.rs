//! Ranges of service addresses.

use keelson_api::networking_k8s_io::v1::ServiceCIDR;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::metadata;
use crate::typed::{IMMUTABLE, keep_all_metadata};

/// Registers the rules of ranges.
pub fn register(code: &mut KindCode) {
    code.kind::<ServiceCIDR>()
        .strategy(ServiceCidrStrategy)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::networking::SERVICE_CIDR);
}

/// The rules of ranges.
struct ServiceCidrStrategy;

impl Strategy for ServiceCidrStrategy {
    type Object = ServiceCIDR;

    /// A range of one family may get one of the other beside it; else nothing changes.
    fn validate_update(&self, _context: &Context, new: &ServiceCIDR, old: &ServiceCIDR) -> ErrorList {
        let (now, was) = (&new.spec.cidrs, &old.spec.cidrs);
        let path = Path::new("spec").child("cidrs");
        if now.len() != was.len() && (was.len(), now.len()) != (1, 2) {
            return FieldError::invalid(&path, shown(now), IMMUTABLE).into();
        }
        let changed = now.iter().zip(was).enumerate().filter(|(_, (now, was))| now != was);
        changed
            .map(|(place, (now, _))| FieldError::invalid(&path.index(place), now, IMMUTABLE))
            .collect()
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut ServiceCIDR, old: &ServiceCIDR) {
        keep_all_metadata(new, old);
    }
}

fn shown(ranges: &[String]) -> keelson_machinery::field::BadValue {
    keelson_machinery::field::BadValue::json(serde_json::Value::from(ranges.to_vec()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn a_range_stays() {
        let changed = |old: &str, new: &str| {
            let read = |ranges: &str| read::<ServiceCIDR>(&format!(r#"{{"spec":{{"cidrs":[{ranges}]}}}}"#));
            lines(&ServiceCidrStrategy.validate_update(&context(), &read(new), &read(old)))
        };
        let at = |place: &str, value: &str| format!("spec.cidrs{place}: Invalid value: {value}: field is immutable");
        assert_eq!(changed(r#""a""#, r#""a""#), "");
        assert_eq!(changed(r#""a""#, r#""a","b""#), "");
        assert_eq!(changed(r#""a""#, r#""b","a""#), at("[0]", "\"b\""));
        assert_eq!(changed(r#""a""#, r#""b""#), at("[0]", "\"b\""));
        assert_eq!(changed(r#""a","b""#, r#""a","c""#), at("[1]", "\"c\""));
        assert_eq!(changed(r#""a","b""#, r#""a""#), at("", "[\"a\"]"));
    }
}
