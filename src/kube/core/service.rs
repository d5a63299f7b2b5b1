//! Services: defaults that hang on the type, addresses that stay, and the most visible rules.
//!
//! No cluster address and no node port is allocated here yet: what a client asks for is kept, and nothing is given to
//! those who ask for nothing.

use std::collections::BTreeSet;

use keelson_api::core::v1::{Service, ServicePort, ServiceSpec};
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::intstr::IntOrString;
use keelson_machinery::validation::{labels, names};
use keelson_registry::{Context, KindCode, Strategy};

use super::subresources::proxy;
use crate::{cells, faults, ip, metadata};

/// How long a client stays with the same pod, in seconds.
const AFFINITY_SECONDS: i32 = 10_800;
/// Stands in place of the cluster address of a service without one.
const HEADLESS: &str = "None";

/// Registers the rules of services.
pub fn register(code: &mut KindCode) {
    code.kind::<Service>()
        .strategy(ServiceStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .subresource("proxy", proxy::OfService)
        .cells(cells::service::SERVICE);
}

/// The rules of services.
struct ServiceStrategy;

impl Strategy for ServiceStrategy {
    type Object = Service;

    fn warnings(&self, new: &Service, _old: Option<&Service>) -> Vec<String> {
        ignored(&new.spec)
    }

    fn prepare_for_create(&self, _context: &Context, service: &mut Service) {
        join_addresses(&mut service.spec, None);
        families_of_headless(&mut service.spec);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut Service, old: &Service) {
        keep_addresses(&mut new.spec, &old.spec);
        join_addresses(&mut new.spec, Some(&old.spec));
    }

    fn validate(&self, _context: &Context, object: &Service) -> ErrorList {
        validate(object, &[])
    }

    fn validate_update(&self, _context: &Context, new: &Service, old: &Service) -> ErrorList {
        let stored: Vec<&str> = old.spec.external_ips.iter().map(String::as_str).collect();
        let mut errors = validate(new, &stored);
        let stays = old.spec.r#type != "ExternalName" && new.spec.r#type != "ExternalName";
        if let (true, Some(was), Some(is)) = (stays, old.spec.cluster_ips.first(), new.spec.cluster_ips.first())
            && was != is
        {
            let path = Path::new("spec").child("clusterIPs").index(0);
            errors.push(FieldError::invalid(
                &path,
                new.spec.cluster_ips.as_slice(),
                "may not change once set",
            ));
        }
        errors
    }

    /// Only a load balancer is entered from outside.
    fn validate_status_update(&self, _context: &Context, new: &Service, _old: &Service) -> ErrorList {
        let entered = new.spec.r#type != "LoadBalancer" && !new.status.load_balancer.ingress.is_empty();
        match entered {
            true => FieldError::forbidden(
                &Path::new("status").child("loadBalancer").child("ingress"),
                "may only be used when `spec.type` is 'LoadBalancer'",
            )
            .into(),
            false => ErrorList::default(),
        }
    }
}

/// What a service says that its kind of address leaves without effect.
fn ignored(spec: &ServiceSpec) -> Vec<String> {
    let external = !spec.external_ips.is_empty();
    let mut found = Vec::new();
    if spec.r#type != "ExternalName" && !spec.external_name.is_empty() {
        found.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    found.extend(match (spec.r#type.as_str(), spec.cluster_ip.as_str()) {
        ("ExternalName", _) if external => {
            vec!["spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned()]
        }
        ("ExternalName", _) => Vec::new(),
        (_, HEADLESS) => [
            (!spec.load_balancer_ip.is_empty(), "spec.loadBalancerIP"),
            (external, "spec.externalIPs"),
            (spec.session_affinity == "ClientIP", "spec.SessionAffinity"),
        ]
        .into_iter()
        .filter(|(given, _)| *given)
        .map(|(_, field)| format!("{field} is ignored for headless services"))
        .collect(),
        _ => Vec::new(),
    });
    found
}

/// Defaults in code of services.
fn defaults(service: &mut Service) {
    let spec = &mut service.spec;
    match spec.session_affinity.as_str() {
        "None" => spec.session_affinity_config = None,
        "ClientIP" => {
            let config = spec.session_affinity_config.get_or_insert_default();
            config
                .client_ip
                .get_or_insert_default()
                .timeout_seconds
                .get_or_insert(AFFINITY_SECONDS);
        }
        _ => {}
    }
    for entry in &mut spec.ports {
        let none = match &entry.target_port {
            IntOrString::Int(number) => *number == 0,
            IntOrString::String(name) => name.is_empty(),
        };
        if none {
            entry.target_port = IntOrString::Int(entry.port);
        }
    }
    traffic_defaults(spec);
    let balanced = spec.r#type == "LoadBalancer";
    for ingress in &mut service.status.load_balancer.ingress {
        if balanced && !ingress.ip.is_empty() {
            ingress.ip_mode.get_or_insert_with(|| "VIP".to_owned());
        }
    }
}

fn traffic_defaults(spec: &mut ServiceSpec) {
    let ty = spec.r#type.as_str();
    let from_outside =
        matches!(ty, "LoadBalancer" | "NodePort") || (ty == "ClusterIP" && !spec.external_ips.is_empty());
    if from_outside && spec.external_traffic_policy.is_empty() {
        spec.external_traffic_policy = "Cluster".to_owned();
    }
    if matches!(ty, "LoadBalancer" | "NodePort" | "ClusterIP") {
        spec.internal_traffic_policy.get_or_insert_with(|| "Cluster".to_owned());
    }
    if ty == "LoadBalancer" {
        spec.allocate_load_balancer_node_ports.get_or_insert(true);
    }
}

/// The one address and the list of addresses say the same; of an update the one that changed leads.
fn join_addresses(spec: &mut ServiceSpec, old: Option<&ServiceSpec>) {
    let Some(old) = old else {
        if spec.cluster_ips.is_empty() && !spec.cluster_ip.is_empty() {
            spec.cluster_ips.push(spec.cluster_ip.clone());
        }
        return;
    };
    if spec.cluster_ip == old.cluster_ip || spec.cluster_ips != old.cluster_ips {
        return;
    }
    match (spec.cluster_ip.as_str(), spec.cluster_ips.first_mut()) {
        ("", _) => spec.cluster_ips.clear(),
        (ip, Some(first)) => *first = ip.to_owned(),
        (ip, None) => spec.cluster_ips.push(ip.to_owned()),
    }
}

/// An update that leaves out the addresses keeps them while the type needs any.
fn keep_addresses(new: &mut ServiceSpec, old: &ServiceSpec) {
    if new.r#type == "ExternalName" || old.r#type == "ExternalName" {
        return;
    }
    if new.cluster_ip.is_empty() {
        new.cluster_ip.clone_from(&old.cluster_ip);
    }
    if new.cluster_ips.is_empty() && new.cluster_ip == old.cluster_ip {
        new.cluster_ips.clone_from(&old.cluster_ips);
    }
    if new.ip_families.is_empty() {
        new.ip_families.clone_from(&old.ip_families);
    }
    if new.ip_family_policy.is_none() {
        new.ip_family_policy.clone_from(&old.ip_family_policy);
    }
}

/// A service without an address has families all the same: of its pods', or both if it selects none.
fn families_of_headless(spec: &mut ServiceSpec) {
    if spec.cluster_ips.first().is_none_or(|ip| ip != HEADLESS) {
        return;
    }
    let (policy, families): (_, &[&str]) = match spec.selector.is_empty() {
        true => ("RequireDualStack", &["IPv4", "IPv6"]),
        false => ("SingleStack", &["IPv4"]),
    };
    if spec.ip_family_policy.is_none() && spec.ip_families.is_empty() {
        spec.ip_family_policy = Some(policy.to_owned());
        spec.ip_families = families.iter().map(|f| (*f).to_owned()).collect();
    }
}

/// `stored` are the external addresses that the service had before.
fn validate(service: &Service, stored: &[&str]) -> ErrorList {
    let (spec, path) = (&service.spec, Path::new("spec"));
    let mut errors = ErrorList::default();
    let external = spec.r#type == "ExternalName";
    let headless = spec.cluster_ip == HEADLESS;
    if spec.ports.is_empty() && !headless && !external {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    if spec.r#type == "LoadBalancer" && headless {
        let text = "may not be set to 'None' for LoadBalancer services";
        errors.push(FieldError::invalid(&path.child("clusterIPs").index(0), HEADLESS, text));
    }
    errors.extend(validate_ports(&spec.ports, &path.child("ports")));
    errors.extend(labels::validate_labels(&spec.selector, &path.child("selector")));
    for (place, text) in spec.external_ips.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.child("externalIPs").index(place);
        let written = ip::validate(text, stored, &path);
        if written.is_empty() {
            errors.extend(ip::validate_reachable(text, &path));
        }
        errors.extend(written);
    }
    if external {
        errors.extend(validate_external_name(&spec.external_name, &path.child("externalName")));
    }
    errors
}

fn validate_external_name(name: &str, path: &Path) -> ErrorList {
    // A dot at the end makes the name absolute.
    match name.strip_suffix('.').unwrap_or(name) {
        "" => FieldError::required(path, "").into(),
        host => names::dns_subdomain(host)
            .into_iter()
            .map(|t| FieldError::invalid(path, name, t))
            .collect(),
    }
}

fn validate_ports(ports: &[ServicePort], path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let mut seen = BTreeSet::new();
    for (place, entry) in ports.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = path.index(place);
        let name = path.child("name");
        if entry.name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(&name, ""));
            }
        } else {
            let texts = names::dns_label(&entry.name);
            errors.extend(texts.into_iter().map(|t| FieldError::invalid(&name, &entry.name, t)));
            if !seen.insert(&entry.name) {
                errors.push(FieldError::duplicate(&name, &entry.name));
            }
        }
        errors.extend(faults::at(&path.child("port"), |f| f.port(entry.port)));
        errors.extend(faults::at(&path.child("targetPort"), |f| {
            f.port_or_name(&entry.target_port)
        }));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read_defaulted, text};

    fn service(spec: &str) -> Service {
        let mut service = read_defaulted(&format!(r#"{{"spec":{spec}}}"#));
        defaults(&mut service);
        service
    }

    #[test]
    fn defaults_hang_on_the_type() {
        for (spec, expected) in [
            (
                r#"{"ports":[{"port":80}]}"#,
                concat!(
                    r#"{"ports":[{"protocol":"TCP","port":80,"targetPort":80}],"type":"ClusterIP","#,
                    r#""sessionAffinity":"None","internalTrafficPolicy":"Cluster"}"#
                ),
            ),
            (
                r#"{"type":"LoadBalancer","sessionAffinity":"ClientIP"}"#,
                concat!(
                    r#"{"type":"LoadBalancer","sessionAffinity":"ClientIP","externalTrafficPolicy":"Cluster","#,
                    r#""sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}},"#,
                    r#""allocateLoadBalancerNodePorts":true,"internalTrafficPolicy":"Cluster"}"#
                ),
            ),
            (
                r#"{"type":"ExternalName","externalName":"a.b"}"#,
                r#"{"type":"ExternalName","sessionAffinity":"None","externalName":"a.b"}"#,
            ),
        ] {
            assert_eq!(text(&service(spec).spec), expected);
        }
    }

    #[test]
    fn addresses_say_the_same_and_stay() {
        let mut headless = service(r#"{"clusterIP":"None","selector":{"a":"b"}}"#);
        ServiceStrategy.prepare_for_create(&context(), &mut headless);
        assert_eq!(headless.spec.cluster_ips, ["None"]);
        assert_eq!(headless.spec.ip_families, ["IPv4"]);
        let old = service(r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5"],"ports":[{"port":80}]}"#);
        let mut new = service(r#"{"ports":[{"port":80}]}"#);
        ServiceStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(text(&new.spec), text(&old.spec));
        let mut new = service(r#"{"clusterIP":"10.0.0.6","clusterIPs":["10.0.0.5"],"ports":[{"port":80}]}"#);
        ServiceStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(
            lines(&ServiceStrategy.validate_update(&context(), &new, &old)),
            "spec.clusterIPs[0]: Invalid value: [\"10.0.0.6\"]: may not change once set"
        );
    }

    #[test]
    fn ports_are_checked() {
        for (spec, expected) in [
            ("{}", "spec.ports: Required value"),
            (r#"{"clusterIP":"None"}"#, ""),
            (r#"{"type":"ExternalName"}"#, "spec.externalName: Required value"),
            (r#"{"type":"ExternalName","externalName":"a.example."}"#, ""),
            (
                r#"{"ports":[{"port":80},{"port":81,"name":"a","targetPort":"http"},{"port":82,"name":"a","targetPort":"1"}]}"#,
                "spec.ports[0].name: Required value\nspec.ports[2].name: Duplicate value: \"a\"\n\
                 spec.ports[2].targetPort: Invalid value: \"1\": must contain at least one letter (a-z)",
            ),
            (
                r#"{"ports":[{"port":70000,"targetPort":80}]}"#,
                "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ),
        ] {
            assert_eq!(
                lines(&ServiceStrategy.validate(&context(), &service(spec))),
                expected,
                "{spec}"
            );
        }
    }
}
