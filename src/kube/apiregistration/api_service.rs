//! Registrations of API groups and versions: those that this server serves itself are there at once.

use keelson_api::apiregistration_k8s_io::v1::{APIService, APIServiceCondition, APIServiceSpec, ServiceReference};
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::validation::meta::validate_object_meta_with;
use keelson_machinery::validation::names::{self, NamePart};
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, MetadataChecks, RepeatedChecks, Strategy};

use crate::cells;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::keep_metadata;

const AVAILABLE: &str = "Available";
const CHECKS: MetadataChecks = MetadataChecks {
    create: false,
    standard_finalizers: false,
    update: RepeatedChecks::CHANGE,
    ..metadata::USUAL
};

/// Registers the rules of registrations.
pub fn register(code: &mut KindCode) {
    code.kind::<APIService>()
        .strategy(ApiServiceStrategy)
        .metadata_checks(CHECKS)
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

    fn validate(&self, _context: &Context, new: &APIService, _old: Option<&APIService>) -> ErrorList {
        let mut errors = of_metadata(new);
        errors.extend(faults::of_object(|f| check(f, new)));
        errors
    }

    fn validate_status_update(&self, _context: &Context, new: &APIService, _old: &APIService) -> ErrorList {
        faults::of_status(|f| {
            f.each("conditions", &new.status.conditions, |f, condition| {
                f.at("status").one_of(&condition.status, &["True", "False", "Unknown"]);
            });
        })
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

/// The metadata of an object whose name says what it registers.
fn of_metadata(object: &APIService) -> ErrorList {
    let expected = format!("{}.{}", object.spec.version, object.spec.group);
    let rule = |name: &str, _: NamePart| -> Vec<String> {
        let mut faults = names::path_segment(name);
        if faults.is_empty() && name != expected {
            faults.push(format!("must be `spec.version+\".\"+spec.group`: {expected:?}"));
        }
        faults
    };
    validate_object_meta_with(&object.metadata, false, &rule, &Path::new("metadata"))
}

fn check(f: &mut Faults<'_>, object: &APIService) {
    let spec = &object.spec;
    let mut f = f.at("spec");
    match (spec.group.as_str(), spec.version.as_str()) {
        ("", "v1") => {}
        ("", _) => f
            .at("group")
            .required("only v1 may have an empty group and it better be legacy kube"),
        (group, _) => f.at("group").subdomain(group),
    }
    f.at("version")
        .texts(&spec.version, names::dns_1035_label(&spec.version));
    for (field, number, most) in [
        ("groupPriorityMinimum", spec.group_priority_minimum, 20_000),
        ("versionPriority", spec.version_priority, 1000),
    ] {
        if !(1..=most).contains(&number) {
            f.at(field)
                .invalid(number, format!("must be positive and less than {most}"));
        }
    }
    match spec.service.as_deref() {
        Some(service) => remote(&mut f, spec, service),
        None => local(&mut f, spec),
    }
}

/// What this server serves itself needs no connection.
fn local(f: &mut Faults<'_>, spec: &APIServiceSpec) {
    if !spec.ca_bundle.is_empty() {
        let shown = format!("{} bytes", spec.ca_bundle.len());
        f.at("caBundle")
            .invalid(shown, "local APIServices may not have a caBundle");
    }
    if spec.insecure_skip_tls_verify {
        f.at("insecureSkipTLSVerify")
            .invalid(true, "local APIServices may not have insecureSkipTLSVerify");
    }
}

fn remote(f: &mut Faults<'_>, spec: &APIServiceSpec, service: &ServiceReference) {
    let mut at = f.at("service");
    at.all_filled(service, &["namespace", "name"]);
    let port = service.port.unwrap_or_default();
    let text = "port is not valid: must be between 1 and 65535, inclusive";
    at.at("port").invalid_if(!(1..=65535).contains(&port), port, text);
    if spec.insecure_skip_tls_verify && !spec.ca_bundle.is_empty() {
        f.at("insecureSkipTLSVerify")
            .invalid(true, "may not be true if caBundle is present");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn what_is_served_here_is_available() {
        for (spec, conditions) in [("{}", 1), (r#"{"service":{"name":"s"}}"#, 0)] {
            let mut o: APIService = read(&format!(r#"{{"spec":{spec}}}"#));
            ApiServiceStrategy.prepare_for_create(&context(), &mut o);
            assert_eq!(o.status.conditions.len(), conditions, "{spec}");
        }
    }

    #[test]
    fn a_registration_is_of_a_version() {
        for (name, spec, expected) in [
            (
                "v1.a.b",
                r#""group":"a.b","groupPriorityMinimum":1,"versionPriority":1"#,
                "",
            ),
            ("v1.", r#""groupPriorityMinimum":1,"versionPriority":1"#, ""),
            (
                "x",
                r#""group":"a.b","groupPriorityMinimum":0,"versionPriority":1001"#,
                "metadata.name spec.groupPriorityMinimum spec.versionPriority",
            ),
            (
                "v1.a.b",
                r#""group":"a.b","groupPriorityMinimum":1,"versionPriority":1,"caBundle":"YQ==","insecureSkipTLSVerify":true"#,
                "spec.caBundle spec.insecureSkipTLSVerify",
            ),
            (
                "v1.a.b",
                r#""group":"a.b","groupPriorityMinimum":1,"versionPriority":1,"caBundle":"YQ==","insecureSkipTLSVerify":true,
                    "service":{"name":"s","port":0}"#,
                "spec.service.namespace spec.service.port spec.insecureSkipTLSVerify",
            ),
        ] {
            let text = format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{"version":"v1",{spec}}}}}"#);
            let o: APIService = read(&text);
            let found = lines(&ApiServiceStrategy.validate(&context(), &o, None));
            let fields: Vec<&str> = found.lines().filter_map(|line| line.split(": ").next()).collect();
            assert_eq!(fields.join(" "), expected, "{spec}");
        }
    }
}
