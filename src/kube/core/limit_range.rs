//! Limit ranges: bounds of containers that are defaults too.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::core::v1::{LimitRange, LimitRangeItem};
use keelson_machinery::field::ErrorList;
use keelson_machinery::quantity::Quantity;
use keelson_machinery::validation::labels;
use keelson_registry::{Context, KindCode, Strategy};

use super::resource_check::{self, may_be_overcommitted};
use super::resource_list::round;
use crate::faults::{self, Faults, Unique};
use crate::metadata;

const POD: &str = "Pod";
const CONTAINER: &str = "Container";
const CLAIM: &str = "PersistentVolumeClaim";

/// An amount, if there is one, and what it is called.
type Named<'a> = Option<(&'static str, &'a Quantity)>;

/// Registers the rules of limit ranges.
pub fn register(code: &mut KindCode) {
    code.kind::<LimitRange>()
        .strategy(LimitRangeStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::WHOLE);
}

/// The rules of limit ranges.
struct LimitRangeStrategy;

impl Strategy for LimitRangeStrategy {
    type Object = LimitRange;

    /// One without a name gets one.
    fn prepare_for_create(&self, context: &Context, object: &mut LimitRange) {
        if let (true, Some(verbs)) = (object.metadata.name.is_empty(), &context.verbs) {
            object.metadata.name = verbs.backend.new_uid();
        }
    }

    fn validate(&self, _context: &Context, new: &LimitRange, _old: Option<&LimitRange>) -> ErrorList {
        let mut types = Unique::default();
        faults::of_spec(|f| {
            f.each("limits", &new.spec.limits, |f, item| {
                type_name(&mut f.at("type"), &item.r#type);
                types.check(&mut f.at("type"), &item.r#type);
                names(f, item);
                let all: BTreeSet<&String> = lists(item).iter().flat_map(|(_, amounts)| amounts.keys()).collect();
                all.into_iter().for_each(|name| amounts(f, item, name));
            });
        })
    }
}

fn type_name(f: &mut Faults<'_>, name: &str) {
    let texts = labels::qualified_name(name);
    if texts.is_empty() && !name.contains('/') && !matches!(name, POD | CONTAINER | CLAIM) {
        f.invalid(name, "must be a standard limit type or fully qualified");
    }
    f.texts(name, texts);
}

/// The amounts of an item, by the names of their fields.
fn lists(item: &LimitRangeItem) -> [(&'static str, &BTreeMap<String, Quantity>); 5] {
    [
        ("max", &item.max),
        ("min", &item.min),
        ("default", &item.default),
        ("defaultRequest", &item.default_request),
        ("maxLimitRequestRatio", &item.max_limit_request_ratio),
    ]
}

fn names(f: &mut Faults<'_>, item: &LimitRangeItem) {
    let check = match item.r#type.as_str() {
        POD | CONTAINER => resource_check::of_container,
        _ => resource_check::any,
    };
    for (name, amounts) in lists(item) {
        if item.r#type != POD || !name.starts_with("default") {
            f.each_key(name, amounts, |f, name, _| check(f, name));
        } else if !amounts.is_empty() {
            f.at(name).forbidden("may not be specified when `type` is 'Pod'");
        }
    }
    if item.r#type == CLAIM && !item.min.contains_key("storage") && !item.max.contains_key("storage") {
        let text = "either minimum or maximum storage value is required, but neither was provided";
        f.at("limits").required(text);
    }
}

/// Amounts of one resource: each is at least as much as those that it bounds.
fn amounts(f: &mut Faults<'_>, item: &LimitRangeItem, name: &str) {
    let is_pod = item.r#type == POD;
    let (min, max) = (item.min.get(name), item.max.get(name));
    let (default, request) = match is_pod {
        true => (None, None),
        false => (item.default.get(name), item.default_request.get(name)),
    };
    let named = |text, amount| Some((text, amount?));
    let (min_value, max_value) = (named("min value", min), named("max value", max));
    let request_value = named("default request value", request);
    let default_value = named("default value", default);
    let mut in_order = |field: &str, at: Option<&Quantity>, less: Named<'_>, more: Named<'_>| {
        if let (Some((lesser, less)), Some((greater, more))) = (less, more)
            && less > more
        {
            let text = format!("{lesser} {less} is greater than {greater} {more}");
            f.at(field).key(name).invalid(at.map_or("", Quantity::as_str), text);
        }
    };
    in_order("min", min, min_value, max_value);
    in_order("defaultRequest", request, min_value, request_value);
    in_order("defaultRequest", request, request_value, max_value);
    let limit = named("default limit value", default);
    in_order("defaultRequest", request, request_value, limit);
    in_order("default", min, min_value, default_value);
    in_order("default", max, default_value, max_value);
    if let Some(most) = item.max_limit_request_ratio.get(name) {
        ratio(&mut f.at("maxLimitRequestRatio").key(name), most, min, max);
    }
    if let (Some(default), Some(request)) = (default, request)
        && !may_be_overcommitted(name)
        && default != request
    {
        let text = format!("default value {default} must equal to defaultRequest value {request} in {name}");
        f.at("defaultRequest").key(name).invalid(request.as_str(), text);
    }
}

/// How many times what it asks for something may use.
fn ratio(f: &mut Faults<'_>, ratio: &Quantity, min: Option<&Quantity>, max: Option<&Quantity>) {
    if ratio.milli_value() < 1000 {
        f.invalid(ratio.as_str(), format!("ratio {} is less than 1", ratio.as_str()));
    }
    let (Some(min), Some(max)) = (min, max) else { return };
    // As exact as the numbers allow.
    let is_small = [ratio, min, max].iter().all(|amount| amount.value() < i64::MAX / 1000);
    let number = |amount: &Quantity| match is_small {
        true => amount.milli_value() as f64,
        false => amount.value() as f64,
    };
    let of_ratio = number(ratio) / if is_small { 1000.0 } else { 1.0 };
    let most = number(max) / number(min);
    if of_ratio > most {
        f.invalid(
            ratio.as_str(),
            format!("ratio {} is greater than max/min = {most:.6}", ratio.as_str()),
        );
    }
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
    use crate::testing::{context, lines, read, text};

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

    #[test]
    fn bounds_are_in_order() {
        for (item, expected) in [
            (
                r#"{"type":"Container","min":{"cpu":"1"},"max":{"cpu":"2"},"maxLimitRequestRatio":{"cpu":"2"}}"#,
                "",
            ),
            (
                r#"{"type":"Container","min":{"cpu":"2"},"max":{"cpu":"1"}}"#,
                "min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
            ),
            (
                r#"{"type":"Container","max":{"cpu":"1"},"default":{"cpu":"2"},"defaultRequest":{"cpu":"3"}}"#,
                "defaultRequest[cpu]: Invalid value: \"3\": default request value 3 is greater than max value 1\n\
                 defaultRequest[cpu]: Invalid value: \"3\": default request value 3 is greater than default limit value 2\n\
                 default[cpu]: Invalid value: \"1\": default value 2 is greater than max value 1",
            ),
            (
                r#"{"type":"Container","min":{"cpu":"1"},"max":{"cpu":"2"},"maxLimitRequestRatio":{"cpu":"3"}}"#,
                "maxLimitRequestRatio[cpu]: Invalid value: \"3\": ratio 3 is greater than max/min = 2.000000",
            ),
            (
                r#"{"type":"Container","default":{"a.b/c":"1"},"defaultRequest":{"a.b/c":"0"}}"#,
                "defaultRequest[a.b/c]: Invalid value: \"0\": default value 1 must equal to defaultRequest value 0 in a.b/c",
            ),
            (
                r#"{"type":"PersistentVolumeClaim"}"#,
                "limits: Required value: either minimum or maximum storage value is required, but neither was provided",
            ),
            (
                r#"{"type":"x","max":{"x":"1"}}"#,
                "type: Invalid value: \"x\": must be a standard limit type or fully qualified\n\
                 max[x]: Invalid value: \"x\": must be a standard resource type or fully qualified",
            ),
        ] {
            let range: LimitRange = read(&format!(r#"{{"spec":{{"limits":[{item}]}}}}"#));
            let found = lines(&LimitRangeStrategy.validate(&context(), &range, None));
            assert_eq!(found.replace("spec.limits[0].", ""), expected, "{item}");
        }
    }
}
