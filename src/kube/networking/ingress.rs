//! Ingresses: hosts and paths, and the services or other objects behind them.

use keelson_api::core::v1::TypedLocalObjectReference;
use keelson_api::networking_k8s_io::v1::{
    HTTPIngressPath, Ingress, IngressBackend, IngressRule, IngressServiceBackend, IngressSpec, IngressTLS,
};
use keelson_machinery::field::{BadValue, ErrorList, Path};
use keelson_machinery::validation::names;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::faults::{self, Faults, given};
use crate::ip;
use crate::names::wildcard_subdomain;

/// Named the class of an ingress before there was a field for it.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const PATH_TYPES: [&str; 3] = ["Exact", "ImplementationSpecific", "Prefix"];
/// What a path that is compared can't have.
const BAD_PARTS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const BAD_ENDS: [&str; 2] = ["/..", "/."];
const NOT_IP: &str = "must be a DNS name, not an IP address";

/// Registers the rules of ingresses.
pub fn register(code: &mut KindCode) {
    code.kind::<Ingress>()
        .strategy(IngressStrategy)
        .cells(cells::networking::INGRESS);
}

/// The rules of ingresses.
struct IngressStrategy;

impl Strategy for IngressStrategy {
    type Object = Ingress;

    fn warnings(&self, new: &Ingress, old: Option<&Ingress>) -> Vec<String> {
        let is_old_way = new.metadata.annotations.contains_key(CLASS_ANNOTATION);
        if old.is_some() || !is_old_way || new.spec.ingress_class_name.is_some() {
            return Vec::new();
        }
        vec![format!(
            "annotation {CLASS_ANNOTATION:?} is deprecated, please use 'spec.ingressClassName' instead"
        )]
    }

    fn prepare_for_status_update(&self, context: &Context, new: &mut Ingress, _old: &Ingress) {
        let path = Path::new("status").child("loadBalancer").child("ingress");
        for (place, ingress) in new.status.load_balancer.ingress.iter().enumerate() {
            if let Some(text) = ip::warnings(&ingress.ip, &path.index(place)) {
                context.warn(text);
            }
        }
    }

    fn validate(&self, _context: &Context, new: &Ingress, old: Option<&Ingress>) -> ErrorList {
        faults::of_object(|f| {
            let stored = old.map_or_else(Stored::default, |old| Stored::of(&old.spec));
            check(&mut f.at("spec"), &new.spec, &stored);
            let class = new.spec.ingress_class_name.as_ref();
            let annotation = new.metadata.annotations.get(CLASS_ANNOTATION);
            if let (None, Some(class), Some(other)) = (old, class, annotation) {
                let text = "must match `ingressClassName` when both are specified";
                let mut annotations = f.at("annotations");
                annotations.at(CLASS_ANNOTATION).invalid_if(class != other, other, text);
            }
        })
    }

    fn validate_status_update(&self, _context: &Context, new: &Ingress, old: &Ingress) -> ErrorList {
        let stored: Vec<&str> = old.status.load_balancer.ingress.iter().map(|i| i.ip.as_str()).collect();
        faults::of_status(|f| {
            let (mut f, points) = (f.at("loadBalancer"), &new.status.load_balancer.ingress);
            f.each("ingress", points, |f, point| {
                if !point.ip.is_empty() {
                    f.at("ip").ip(&point.ip, &stored);
                }
                f.at("hostname").subdomain(given(&point.hostname));
                no_ip(&mut f.at("hostname"), &point.hostname);
            });
        })
    }
}

/// What is let through since it was before.
#[derive(Default)]
struct Stored {
    bad_secrets: bool,
    /// Paths of hosts with a wildcard, however they are.
    bad_wildcard_rules: bool,
}

impl Stored {
    fn of(old: &IngressSpec) -> Stored {
        let is_bad_secret =
            |tls: &IngressTLS| !tls.secret_name.is_empty() && !names::dns_subdomain(&tls.secret_name).is_empty();
        let is_bad_rule = |one: &IngressRule| one.host.contains('*') && faults::are_in(|f| paths(f, one));
        Stored {
            bad_secrets: old.tls.iter().any(is_bad_secret),
            bad_wildcard_rules: old.rules.iter().any(is_bad_rule),
        }
    }
}

fn no_ip(f: &mut Faults<'_>, host: &str) {
    f.invalid_if(ip::parse(host).is_some(), host, NOT_IP);
}

/// The name of a host, or of all hosts below a domain.
fn host(f: &mut Faults<'_>, host: &str) {
    match host.contains('*') {
        true => f.texts(host, wildcard_subdomain(host)),
        false => f.subdomain(host),
    }
}

fn check(f: &mut Faults<'_>, spec: &IngressSpec, stored: &Stored) {
    if spec.rules.is_empty() && spec.default_backend.is_none() {
        f.invalid(BadValue::null(), "either `defaultBackend` or `rules` must be specified");
    }
    f.some("defaultBackend", spec.default_backend.as_deref(), backend);
    f.each("rules", &spec.rules, |f, rule| {
        if !rule.host.is_empty() {
            no_ip(&mut f.at("host"), &rule.host);
            host(&mut f.at("host"), &rule.host);
        }
        if !(stored.bad_wildcard_rules && rule.host.contains('*')) {
            paths(f, rule);
        }
    });
    f.each("tls", &spec.tls, |f, tls| {
        f.each("hosts", &tls.hosts, |f, name| host(f, name));
        if !stored.bad_secrets && !tls.secret_name.is_empty() {
            f.at("secretName").subdomain(&tls.secret_name);
        }
    });
    f.at("ingressClassName").subdomain(spec.ingress_class_name.as_deref());
}

fn paths(f: &mut Faults<'_>, rule: &IngressRule) {
    let Some(http) = rule.ingress_rule_value.http.as_deref() else {
        return;
    };
    let mut f = f.at("http");
    f.at("paths").required_if(http.paths.is_empty(), "");
    f.each("paths", &http.paths, path);
}

fn path(f: &mut Faults<'_>, one: &HTTPIngressPath) {
    let Some(kind) = one.path_type.as_deref() else {
        return f.at("pathType").required("pathType must be specified");
    };
    let is_compared = matches!(kind, "Exact" | "Prefix");
    f.at("pathType").one_of(kind, &PATH_TYPES);
    let path = one.path.as_str();
    let is_known = PATH_TYPES.contains(&kind);
    if is_known && !path.starts_with('/') && (is_compared || !path.is_empty()) {
        f.at("path").invalid(path, "must be an absolute path");
    }
    if is_compared {
        for part in BAD_PARTS.iter().filter(|part| path.contains(**part)) {
            f.at("path").invalid(path, format!("must not contain '{part}'"));
        }
        for end in BAD_ENDS.iter().filter(|end| path.ends_with(**end)) {
            f.at("path").invalid(path, format!("cannot end with '{end}'"));
        }
    }
    backend(&mut f.at("backend"), &one.backend);
}

fn backend(f: &mut Faults<'_>, backend: &IngressBackend) {
    match (backend.resource.as_deref(), backend.service.as_deref()) {
        (Some(_), Some(_)) => f.invalid("", "cannot set both resource and service backends"),
        (Some(object), None) => reference(&mut f.at("resource"), object),
        (None, Some(service)) => service_backend(f, service),
        (None, None) => f.invalid("", "resource or service backend is required"),
    }
}

fn service_backend(f: &mut Faults<'_>, service: &IngressServiceBackend) {
    let mut of_service = f.at("service");
    of_service.at("name").filled_label(&service.name);
    let (name, number) = (service.port.name.as_str(), service.port.number);
    let mut port = of_service.at("port");
    match (name, number) {
        ("", 0) => f.required("port name or number is required"),
        ("", number) => port.at("number").port(number),
        (name, 0) => port.at("name").texts(name, crate::names::port(name)),
        _ => f.invalid("", "cannot set both port name & port number"),
    }
}

/// An object of the same namespace.
fn reference(f: &mut Faults<'_>, object: &TypedLocalObjectReference) {
    f.at("apiGroup").subdomain(object.api_group.as_deref());
    f.at("kind").filled_segment(&object.kind);
    f.at("name").filled_segment(&object.name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    fn ingress(spec: &str) -> Ingress {
        read(&format!(r#"{{"spec":{spec}}}"#))
    }

    #[test]
    fn hosts_paths_and_backends() {
        let service = r#""backend":{"service":{"name":"s","port":{"number":80}}}"#;
        let path = |path: &str, kind: &str| {
            format!(r#"{{"rules":[{{"http":{{"paths":[{{"path":"{path}","pathType":"{kind}",{service}}}]}}}}]}}"#)
        };
        for (spec, expected) in [
            (path("/a", "Prefix"), ""),
            (path("", "ImplementationSpecific"), ""),
            (
                "{}".to_owned(),
                "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
            ),
            (
                path("a//b/..", "Exact"),
                "spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": must be an absolute path\n\
                 spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": must not contain '//'\n\
                 spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": cannot end with '/..'",
            ),
            (
                r#"{"defaultBackend":{"service":{"name":"s"}},"rules":[{"host":"1.2.3.4"},{"host":"*.a.b"}],
                    "tls":[{"hosts":["*.c"],"secretName":"s"}]}"#
                    .to_owned(),
                "spec.defaultBackend: Required value: port name or number is required\n\
                 spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
            ),
            (
                r#"{"defaultBackend":{"resource":{"kind":"K","name":"a/b"}}}"#.to_owned(),
                "spec.defaultBackend.resource.name: Invalid value: \"a/b\": may not contain '/'",
            ),
        ] {
            let found = lines(&IngressStrategy.validate(&context(), &ingress(&spec), None));
            assert_eq!(found, expected, "{spec}");
        }
    }

    #[test]
    fn what_is_stored_stays() {
        let old = ingress(r#"{"rules":[{"host":"*.a.b","http":{"paths":[]}}],"tls":[{"secretName":"A_"}]}"#);
        assert_eq!(IngressStrategy.validate(&context(), &old, None).len(), 2);
        assert!(IngressStrategy.validate(&context(), &old, Some(&old)).is_empty());
    }
}
