//! Device requests of claims and classes: requests, constraints among them, and configuration for drivers.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use keelson_api::resource_k8s_io::v1::{
    DeviceClaim, DeviceConfiguration, DeviceConstraint, DeviceRequest, DeviceSelector,
};
use keelson_machinery::cel::{Environment, Type};
use keelson_machinery::field::BadValue;

use super::devices::{bounded, full_attribute_name, keyed, raw, set, short_keyed, toleration};
use crate::core::volume_source;
use crate::faults::Faults;

pub const MOST: usize = 32;
const MOST_ALTERNATIVES: usize = 8;
/// Longest expressions and parameters, in bytes.
const EXPRESSION_MAX: usize = 10 * 1024;
const PARAMETERS_MAX: usize = 10 * 1024;
const ONE_FORM: &str = "exactly one of `exactly` or `firstAvailable` is required";
const ONE_ATTRIBUTE: &str =
    r#"exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set"#;
const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// Names of requests, each of them with those of its alternatives.
pub struct Names<'a>(HashMap<&'a str, HashSet<&'a str>>);

impl<'a> Names<'a> {
    /// Those of a claim.
    pub fn of(claim: &'a DeviceClaim) -> Names<'a> {
        let names = |request: &'a DeviceRequest| request.first_available.iter().map(|sub| sub.name.as_str()).collect();
        let all = claim.requests.iter();
        Names(all.map(|request| (request.name.as_str(), names(request))).collect())
    }

    fn has(&self, name: &str) -> bool {
        match name.split_once('/') {
            None => self.0.contains_key(name),
            Some((request, sub)) => self.0.get(request).is_some_and(|subs| subs.contains(sub)),
        }
    }

    /// Checks that a name is one of these.
    pub fn check(&self, f: &mut Faults<'_>, name: &str) {
        if name.split('/').count() <= 2 {
            name.split('/').for_each(|part| f.label(part));
        }
        f.invalid_if(!self.has(name), name, NO_REQUEST);
    }
}

/// Checks what a claim asks for.
pub fn claim(f: &mut Faults<'_>, claim: &DeviceClaim) {
    let names = Names::of(claim);
    let requests = (claim.requests.as_slice(), MOST);
    short_keyed(f, "requests", requests, |request| &request.name, request);
    bounded(f, "constraints", (&claim.constraints, MOST), |f, one| {
        constraint(f, one, &names)
    });
    bounded(f, "config", (&claim.config, MOST), |f, config| {
        set(f, "requests", (&config.requests, MOST), |f, name| names.check(f, name));
        configuration(f, &config.device_configuration, false);
    });
}

fn request(f: &mut Faults<'_>, request: &DeviceRequest) {
    f.at("name").label(&request.name);
    let alternatives = request.first_available.as_slice();
    match (request.exactly.as_deref(), alternatives.is_empty()) {
        (None, true) => f.required(ONE_FORM),
        (Some(_), false) => f.invalid(BadValue::null(), format!("{ONE_FORM}, but multiple fields are set")),
        (Some(exact), true) => {
            let mut f = f.at("exactly");
            f.at("deviceClassName").filled_subdomain(&exact.device_class_name);
            selectors(&mut f, &exact.selectors);
            count(&mut f, &exact.allocation_mode, exact.count);
            f.each("tolerations", &exact.tolerations, toleration);
        }
        (None, false) => {
            let subs = (alternatives, MOST_ALTERNATIVES);
            keyed(
                f,
                "firstAvailable",
                subs,
                |sub| &sub.name,
                |f, sub| {
                    f.at("name").label(&sub.name);
                    f.at("deviceClassName").filled_subdomain(&sub.device_class_name);
                    selectors(f, &sub.selectors);
                    count(f, &sub.allocation_mode, sub.count);
                    f.each("tolerations", &sub.tolerations, toleration);
                },
            );
        }
    }
}

/// How many devices are asked for.
fn count(f: &mut Faults<'_>, mode: &str, count: i64) {
    match mode {
        "All" => {
            let text = "must not be specified when allocationMode is 'All'";
            f.at("count").invalid_if(count != 0, count, text);
        }
        "ExactCount" => f.at("count").positive(count),
        mode => f.at("allocationMode").not_supported(mode, &["All", "ExactCount"]),
    }
}

/// Checks expressions that select devices.
pub fn selectors(f: &mut Faults<'_>, selectors: &[DeviceSelector]) {
    bounded(f, "selectors", (selectors, MOST), |f, selector| {
        let Some(cel) = selector.cel.as_deref() else {
            return f.at("cel").required("");
        };
        let (mut f, source) = (f.at("cel"), cel.expression.as_str());
        let mut f = f.at("expression");
        if source.len() > EXPRESSION_MAX {
            return f.too_long(EXPRESSION_MAX);
        }
        if let Some(why) = expression_fault(source) {
            f.invalid(source, why);
        }
    });
}

/// Why an expression does not tell whether a device fits.
fn expression_fault(source: &str) -> Option<String> {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    let environment = ENVIRONMENT.get_or_init(|| {
        let by_domain = |ty: Type| Type::map(Type::String, Type::map(Type::String, ty));
        let device = Type::object(
            "kubernetes.DRADevice",
            [
                ("driver", Type::String),
                ("attributes", by_domain(Type::Dyn)),
                ("capacity", by_domain(Type::Opaque("kubernetes.Quantity"))),
                ("allowMultipleAllocations", Type::Bool),
            ],
        );
        Environment::new().variable("device", device)
    });
    // Of macros that give a value a name nothing is known here; they are let through.
    if source.contains("cel.bind") {
        return None;
    }
    match environment.compile(source) {
        Err(error) => Some(format!("compilation failed: {error}")),
        Ok(program) => match program.result_type() {
            Type::Bool | Type::Dyn => None,
            other => Some(format!("must evaluate to bool or the unknown type, not {other}")),
        },
    }
}

fn constraint(f: &mut Faults<'_>, constraint: &DeviceConstraint, names: &Names<'_>) {
    set(f, "requests", (&constraint.requests, MOST), |f, name| {
        names.check(f, name)
    });
    match (
        constraint.match_attribute.as_deref(),
        constraint.distinct_attribute.as_deref(),
    ) {
        (Some(name), _) => full_attribute_name(&mut f.at("matchAttribute"), name),
        (None, Some(name)) => full_attribute_name(&mut f.at("distinctAttribute"), name),
        (None, None) => f.required(ONE_ATTRIBUTE),
    }
}

/// Checks what is handed on to a driver.
pub fn configuration(f: &mut Faults<'_>, configuration: &DeviceConfiguration, is_stored: bool) {
    let Some(opaque) = configuration.opaque.as_deref() else {
        return f.at("opaque").required("");
    };
    let mut f = f.at("opaque");
    volume_source::driver(&mut f.at("driver"), &opaque.driver);
    let parameters = opaque.parameters.as_bytes();
    raw(&mut f.at("parameters"), parameters, PARAMETERS_MAX, is_stored);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    #[test]
    fn requests_have_one_form_and_are_named() {
        let exact = r#""exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":1}"#;
        let request = format!(r#"{{"name":"r",{exact}}}"#);
        for (claim, expected) in [
            (format!(r#"{{"requests":[{request}]}}"#), ""),
            (r#"{"requests":[{"name":"r"}]}"#.to_owned(), "requests[0]"),
            (
                format!(r#"{{"requests":[{{"name":"r",{exact},"firstAvailable":[{{"name":"s"}}]}}]}}"#),
                "requests[0]",
            ),
            (
                r#"{"requests":[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"c","allocationMode":"All","count":1}]}],
                    "constraints":[{"requests":["r/s"],"matchAttribute":"a.b/c"},{"requests":["s"]}]}"#
                    .to_owned(),
                "requests[0].firstAvailable[0].count constraints[1].requests[0] constraints[1]",
            ),
            (
                format!(r#"{{"requests":[{request},{request}],"config":[{{"requests":["r"],"opaque":{{"driver":"d"}}}},{{}}]}}"#),
                "requests[1] config[0].opaque.parameters config[1].opaque",
            ),
            (
                request.replace(r#""count":1"#, r#""selectors":[{},{"cel":{"expression":"device.x"}},{"cel":{"expression":"1"}}]"#)
                    .replace("{\"name\"", "{\"requests\":[{\"name\"") + "]}",
                "requests[0].exactly.selectors[0].cel requests[0].exactly.selectors[1].cel.expression \
                 requests[0].exactly.selectors[2].cel.expression requests[0].exactly.count",
            ),
        ] {
            let of: DeviceClaim = read(&claim);
            let found = lines(&of_object(|f| super::claim(f, &of)));
            // What a compiler says may have lines of its own.
            let fields = found.lines().filter(|line| line.starts_with(['r', 'c'])).filter_map(|line| line.split(": ").next());
            assert_eq!(fields.collect::<Vec<_>>().join(" "), expected, "{claim}");
        }
    }

    #[test]
    fn expressions_tell_whether_a_device_fits() {
        for source in [
            r#"device.driver == "a" && device.attributes["a.b"].c == 1"#,
            r#"device.attributes["a.b"].ok"#,
            r#"device.capacity["a.b"].memory.compareTo(quantity("1Gi")) >= 0"#,
            "cel.bind(a, device.attributes, true)",
        ] {
            assert_eq!(expression_fault(source), None, "{source}");
        }
        for source in ["1", "devices", "device.driver", "("] {
            assert!(expression_fault(source).is_some(), "{source}");
        }
    }
}
