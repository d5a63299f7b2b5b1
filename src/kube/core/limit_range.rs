//! Limit ranges: bounds of containers that are defaults too.

use std::collections::BTreeMap;

use keelson_api::core::v1::{LimitRange, LimitRangeItem};
use keelson_machinery::quantity::Quantity;
use keelson_registry::KindCode;

use super::resource_list::round;
use crate::metadata;

const CONTAINER: &str = "Container";

/// Registers the rules of limit ranges.
pub fn register(code: &mut KindCode) {
    code.kind::<LimitRange>()
        .defaults(defaults)
        .metadata_checks(metadata::WHOLE);
}

/// Defaults in code of limit ranges.
fn defaults(o: &mut LimitRange) {
    for item in &mut o.spec.limits {
        for amounts in [
            &mut item.max,
            &mut item.min,
            &mut item.default,
            &mut item.default_request,
            &mut item.max_limit_request_ratio,
        ] {
            round(amounts);
        }
        if item.r#type == CONTAINER {
            of_container(item);
        }
    }
}

/// A container may by default have as much as it may have at all, and asks for as much as it may have.
fn of_container(item: &mut LimitRangeItem) {
    fill(&mut item.default, &item.max);
    fill(&mut item.default_request, &item.default);
    fill(&mut item.default_request, &item.min);
}

/// Adds what is in `others` alone.
fn fill(amounts: &mut BTreeMap<String, Quantity>, others: &BTreeMap<String, Quantity>) {
    for (name, amount) in others {
        amounts.entry(name.clone()).or_insert_with(|| amount.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    #[test]
    fn bounds_of_containers_are_defaults() {
        for (given, expected) in [
            (
                r#"{"type":"Container","max":{"cpu":"2"}}"#,
                r#"{"type":"Container","max":{"cpu":"2"},"default":{"cpu":"2"},"defaultRequest":{"cpu":"2"}}"#,
            ),
            (
                r#"{"type":"Container","min":{"cpu":"1"},"default":{"memory":"1Mi"}}"#,
                r#"{"type":"Container","min":{"cpu":"1"},"default":{"memory":"1Mi"},"defaultRequest":{"cpu":"1","memory":"1Mi"}}"#,
            ),
            (
                r#"{"type":"Pod","max":{"cpu":"2"}}"#,
                r#"{"type":"Pod","max":{"cpu":"2"}}"#,
            ),
        ] {
            let mut o: LimitRange = read(&format!(r#"{{"spec":{{"limits":[{given}]}}}}"#));
            defaults(&mut o);
            assert_eq!(text(&o.spec.limits[0]), expected);
        }
    }
}
