//! Devices of a ResourceSlice: where they are, their attributes and capacities, and what they share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use keelson_api::core::v1::NodeSelector;
use keelson_api::resource_k8s_io::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Counter, Device, DeviceAttribute, DeviceCapacity,
    ResourceSliceSpec,
};
use keelson_machinery::field::BadValue;
use keelson_machinery::quantity::Quantity;
use keelson_machinery::validation::list_value;
use regex::Regex;

use super::devices::{attribute_name, binding, bounded, keyed, pool, short_keyed, taint};
use crate::core::pod_spec::affinity;
use crate::core::volume_source;
use crate::faults::{Faults, given};
use crate::typed::{same_list, shown};

const MOST_DEVICES: usize = 128;
/// The most of them if they have taints or use counters.
const MOST_ADVANCED: usize = 64;
const MOST_SETS: usize = 8;
const MOST_COUNTERS: usize = 32;
const MOST_USES: usize = 2;
const MOST_ATTRIBUTES: usize = 32;
const MOST_TAINTS: usize = 16;
const MOST_OPTIONS: usize = 10;
const TEXT_MAX: usize = 64;
const ONE_PLACE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
const ONE_DEVICE_PLACE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
    `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NO_PLACE: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
    true in the ResourceSlice spec";
const UNSET_OR_TRUE: &str = "must be either unset or set to true";

/// Checks who made a slice, and which pool it is of.
pub fn origin(f: &mut Faults<'_>, spec: &ResourceSliceSpec) {
    volume_source::driver(&mut f.at("driver"), &spec.driver);
    let mut of_pool = f.at("pool");
    pool(&mut of_pool.at("name"), &spec.pool.name);
    of_pool
        .at("resourceSliceCount")
        .positive(spec.pool.resource_slice_count);
    if spec.pool.generation < 0 {
        let text = "must be greater than or equal to zero";
        of_pool.at("generation").invalid(spec.pool.generation, text);
    }
}

/// Checks what it has, and which nodes have that. What `old` has is let through.
pub fn content(f: &mut Faults<'_>, spec: &ResourceSliceSpec, old: Option<&ResourceSliceSpec>) {
    place(f, spec);
    if !spec.shared_counters.is_empty() && !spec.devices.is_empty() {
        f.invalid("", "only one of `sharedCounters` or `devices` is allowed");
    }
    devices(f, spec, old);
    let sets = (spec.shared_counters.as_slice(), MOST_SETS);
    keyed(
        f,
        "sharedCounters",
        sets,
        |set| &set.name,
        |f, set| {
            counters(f, ("name", &set.name), &set.counters);
        },
    );
}

fn devices(f: &mut Faults<'_>, spec: &ResourceSliceSpec, old: Option<&ResourceSliceSpec>) {
    let is_advanced = |device: &Device| !device.taints.is_empty() || !device.consumes_counters.is_empty();
    let most = if spec.devices.iter().any(is_advanced) {
        MOST_ADVANCED
    } else {
        MOST_DEVICES
    };
    let were: HashMap<&str, &Device> = old
        .iter()
        .flat_map(|old| &old.devices)
        .rev()
        .map(|d| (d.name.as_str(), d))
        .collect();
    let chosen = spec.per_device_node_selection == Some(true);
    short_keyed(
        f,
        "devices",
        (&spec.devices, most),
        |one| &one.name,
        |f, one| {
            device(f, one, were.get(one.name.as_str()).copied(), chosen);
        },
    );
}

/// The nodes of all devices, said in one way.
fn place(f: &mut Faults<'_>, spec: &ResourceSliceSpec) {
    let said = (
        spec.node_name.as_deref(),
        "must be either unset or set to a non-empty string",
    );
    let mut ways = ways(f, said, spec.node_selector.as_deref(), spec.all_nodes, true);
    let each = ("perDeviceNodeSelection", "`perDeviceNodeSelection`");
    flag(f, each, spec.per_device_node_selection, &mut ways);
    f.required_if(ways.is_empty(), ONE_PLACE);
    if ways.len() > 1 {
        let text = format!("{ONE_PLACE}, but multiple fields are set");
        f.invalid(format!("{{{}}}", ways.join(", ")), text);
    }
}

/// The ways in which a slice or a device says where it is: by the name of a node, with what is said of an empty one; by
/// a selector, in a slice of one term; or by all nodes.
fn ways(
    f: &mut Faults<'_>,
    (name, empty): (Option<&str>, &str),
    selector: Option<&NodeSelector>,
    all: Option<bool>,
    one_term: bool,
) -> Vec<&'static str> {
    let mut ways = Vec::new();
    f.at("nodeName").invalid_if(name == Some(""), "", empty);
    f.at("nodeName").subdomain(given(name));
    ways.extend(given(name).map(|_| "`nodeName`"));
    f.some("nodeSelector", selector, |f, selector| {
        affinity::node_selector(f, selector, false);
        if one_term && selector.node_selector_terms.len() != 1 {
            let text = "must have exactly one node selector term";
            f.at("nodeSelectorTerms").invalid(terms(selector), text);
        }
    });
    ways.extend(selector.map(|_| "`nodeSelector`"));
    flag(f, ("allNodes", "`allNodes`"), all, &mut ways);
    ways
}

fn terms(selector: &NodeSelector) -> BadValue {
    match selector.node_selector_terms.as_slice() {
        [] => BadValue::null(),
        terms => list_value(terms.iter().map(|term| term as _)),
    }
}

fn flag(f: &mut Faults<'_>, (name, way): (&str, &'static str), is_set: Option<bool>, ways: &mut Vec<&'static str>) {
    match is_set {
        Some(true) => ways.push(way),
        Some(false) => f.at(name).invalid(false, UNSET_OR_TRUE),
        None => {}
    }
}

fn device(f: &mut Faults<'_>, device: &Device, old: Option<&Device>, is_placed: bool) {
    f.at("name").label(&device.name);
    let count = device.attributes.len() + device.capacity.len();
    if count > MOST_ATTRIBUTES {
        let text = format!("the total number of attributes and capacities must not exceed {MOST_ATTRIBUTES}");
        f.invalid(i64::try_from(count).unwrap_or(i64::MAX), text);
    }
    for name in device.attributes.keys() {
        attribute_name(&mut f.at("attributes"), name);
    }
    f.each_key("attributes", &device.attributes, |f, _, value| attribute(f, value));
    for name in device.capacity.keys() {
        attribute_name(&mut f.at("capacity"), name);
    }
    let is_shared = device.allow_multiple_allocations == Some(true);
    f.each_key("capacity", &device.capacity, |f, _, amount| {
        capacity(f, amount, is_shared)
    });
    if old.is_none_or(|old| !same_list(&old.taints, &device.taints)) {
        bounded(f, "taints", (&device.taints, MOST_TAINTS), taint);
    }
    let uses = (device.consumes_counters.as_slice(), MOST_USES);
    keyed(
        f,
        "consumesCounters",
        uses,
        |uses| &uses.counter_set,
        |f, uses| {
            counters(f, ("counterSet", &uses.counter_set), &uses.counters);
        },
    );
    match is_placed {
        true => device_place(f, device),
        false if device.node_name.is_some() || device.node_selector.is_some() || device.all_nodes.is_some() => {
            f.invalid(BadValue::null(), NO_PLACE);
        }
        false => {}
    }
    binding(f, &device.binding_conditions, &device.binding_failure_conditions);
}

fn device_place(f: &mut Faults<'_>, device: &Device) {
    let said = (device.node_name.as_deref(), "must not be empty");
    let ways = ways(f, said, device.node_selector.as_deref(), device.all_nodes, false);
    f.required_if(ways.is_empty(), ONE_DEVICE_PLACE);
    if ways.len() > 1 {
        f.invalid(format!("{{{}}}", ways.join(", ")), ONE_DEVICE_PLACE);
    }
}

/// An attribute has one value.
fn attribute(f: &mut Faults<'_>, value: &DeviceAttribute) {
    let text = value.string.as_deref();
    f.at("string").max_bytes(text, TEXT_MAX);
    if let Some(version) = value.version.as_deref() {
        let is_good = VERSION.as_ref().is_some_and(|form| form.is_match(version));
        let mut f = f.at("version");
        f.invalid_if(
            !is_good,
            version,
            "must be a string compatible with semver.org spec 2.0.0",
        );
        f.max_bytes(version, TEXT_MAX);
    }
    let are_there = [
        value.int.is_some(),
        value.bool.is_some(),
        text.is_some(),
        value.version.is_some(),
    ];
    match are_there.iter().filter(|is_there| **is_there).count() {
        0 => f.invalid("", "exactly one value must be specified"),
        1 => {}
        _ => f.invalid(shown(value), "exactly one value must be specified"),
    }
}

/// A version as semver.org has it.
static VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let number = r"(0|[1-9][0-9]*)";
    let before = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)";
    let build = "[0-9a-zA-Z-]+";
    let form = format!(r"^{number}\.{number}\.{number}(-{before}(\.{before})*)?(\+{build}(\.{build})*)?$");
    Regex::new(&form).ok()
});

fn capacity(f: &mut Faults<'_>, capacity: &DeviceCapacity, is_shared: bool) {
    let Some(policy) = capacity.request_policy.as_deref() else {
        return;
    };
    let mut f = f.at("requestPolicy");
    if !is_shared {
        return f.forbidden("allowMultipleAllocations must be true");
    }
    match (policy.valid_values.is_empty(), policy.valid_range.as_deref()) {
        (false, Some(_)) => f.forbidden(
            r#"exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time"#,
        ),
        (false, None) => values(&mut f, policy, &capacity.value),
        (true, Some(range)) => match &policy.default {
            None => f.at("default").required("required when validRange is defined"),
            Some(default) => in_range(&mut f.at("validRange"), default, range, &capacity.value),
        },
        (true, None) => {}
    }
}

/// Amounts of which one can be asked for, in their order.
fn values(f: &mut Faults<'_>, policy: &CapacityRequestPolicy, all: &Quantity) {
    let Some(default) = &policy.default else {
        return f.at("default").required("required when validValues is defined");
    };
    let values = policy.valid_values.as_slice();
    for (place, pair) in values.windows(2).enumerate() {
        if let [one, next] = pair
            && one > next
        {
            let text = "values must be sorted in ascending order";
            f.at("validValues").index(place + 1).invalid(next.as_str(), text);
        }
    }
    bounded(f, "validValues", (values, MOST_OPTIONS), |f, value| {
        if value > all {
            let text = format!("option is larger than capacity value: {}", all.as_str());
            f.invalid(value.as_str(), text);
        }
    });
    let mut seen = HashSet::new();
    f.each("validValues", values.iter().take(MOST_OPTIONS), |f, value| {
        if !seen.insert(value.value()) {
            f.duplicate(value.value().to_string());
        }
    });
    if values.len() > MOST_OPTIONS || !values.contains(default) {
        let text = "default value is not valid according to the requestPolicy";
        f.at("validValues").invalid(default.as_str(), text);
    }
}

fn in_range(f: &mut Faults<'_>, default: &Quantity, range: &CapacityRequestPolicyRange, all: &Quantity) {
    let Some(min) = &range.min else {
        return f.at("min").required("required when validRange is defined");
    };
    let mut in_order = |at: &str, (less, more): (&Quantity, &Quantity), value: &Quantity, text: String| {
        f.at(at).invalid_if(less > more, value.as_str(), text);
    };
    let larger = |what: &str| format!("{what} is larger than capacity value: {all}");
    in_order("min", (min, all), min, larger("min"));
    let text = format!("default is less than min: {min}");
    in_order("min", (min, default), default, text);
    if let Some(max) = &range.max {
        let text = format!("min is larger than max: {max}");
        in_order("max", (min, max), min, text);
        in_order("max", (max, all), max, larger("max"));
        let text = format!("default is more than max: {max}");
        in_order("max", (default, max), default, text);
    }
    let Some(step) = &range.step else { return };
    let first = min.plus(step);
    in_order("step", (&first, all), step, larger(&format!("one step {first}")));
    for value in std::iter::once(default).chain(&range.max) {
        let rest = value.value().wrapping_sub(min.value()).checked_rem(step.value());
        if rest.is_some_and(|rest| rest != 0) {
            let text = format!("value is not a multiple of a given step ({step}) from ({min})");
            f.at("step").invalid(value.as_str(), text);
        }
    }
}

/// A set of counters by its name.
fn counters(f: &mut Faults<'_>, (field, name): (&str, &str), counters: &BTreeMap<String, Counter>) {
    f.at(field).filled_label(name);
    match counters.len() {
        0 => f.at("counters").required(""),
        count if count > MOST_COUNTERS => f.at("counters").too_many(count, MOST_COUNTERS),
        _ => counters.keys().for_each(|name| f.at("counters").label(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    fn fields(spec: &str) -> String {
        let of: ResourceSliceSpec = read(&format!(
            r#"{{"driver":"d","pool":{{"name":"p","resourceSliceCount":1}},{spec}}}"#
        ));
        let found = lines(&of_object(|f| {
            origin(f, &of);
            content(f, &of, None);
        }));
        let fields: Vec<&str> = found.lines().filter_map(|line| line.split(": ").next()).collect();
        fields.join(" ").replace("devices[0].", "")
    }

    #[test]
    fn a_slice_is_of_nodes_said_in_one_way() {
        for (spec, expected) in [
            (r#""nodeName":"n""#, ""),
            (r#""allNodes":true"#, ""),
            (r#""allNodes":false"#, "allNodes <nil>"),
            (r#""nodeName":"n","allNodes":true"#, "<nil>"),
            (
                r#""nodeName":"n","devices":[{"name":"d","allNodes":true}]"#,
                "devices[0]",
            ),
            (
                r#""perDeviceNodeSelection":true,"devices":[{"name":"d","allNodes":true}]"#,
                "",
            ),
            (
                r#""perDeviceNodeSelection":true,"devices":[{"name":"d"},{"name":"d","nodeName":""}]"#,
                "devices[0] devices[1].nodeName devices[1] devices[1]",
            ),
        ] {
            assert_eq!(fields(spec), expected, "{spec}");
        }
    }

    #[test]
    fn devices_have_attributes_and_capacities() {
        for (device, expected) in [
            (
                r#""attributes":{"a.b/c":{"int":1},"v":{"version":"1.2.3-rc.1+b"}},"capacity":{"m":{"value":"1"}}"#,
                "",
            ),
            (
                r#""attributes":{"1":{},"v":{"version":"1.2","int":1}}"#,
                "attributes attributes[1] attributes[v].version attributes[v]",
            ),
            (
                r#""capacity":{"m":{"value":"1","requestPolicy":{}}}"#,
                "capacity[m].requestPolicy",
            ),
            (
                r#""allowMultipleAllocations":true,"capacity":{"m":{"value":"4","requestPolicy":{"default":"3","validRange":{"min":"1","max":"5","step":"2"}}}}"#,
                "capacity[m].requestPolicy.validRange.max",
            ),
            (
                r#""allowMultipleAllocations":true,"capacity":{"m":{"value":"4","requestPolicy":{"default":"3","validValues":["2","1","5"]}}}"#,
                "capacity[m].requestPolicy.validValues[1] capacity[m].requestPolicy.validValues[2] capacity[m].requestPolicy.validValues",
            ),
            (
                r#""taints":[{"key":"a"}],"consumesCounters":[{"counterSet":"s"}]"#,
                "taints[0].effect consumesCounters[0].counters",
            ),
        ] {
            let spec = format!(r#""nodeName":"n","devices":[{{"name":"d",{device}}}]"#);
            assert_eq!(fields(&spec), expected, "{device}");
        }
    }
}
