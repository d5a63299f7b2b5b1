//! Cells of webhooks and admission policies, and of the services behind API versions.

use std::fmt::Write;

use keelson_api::admissionregistration_k8s_io::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration, ParamKind, ParamRef,
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use keelson_api::apiregistration_k8s_io::v1::APIService;
use keelson_machinery::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::{UNSET, count};

cells! { pub const VALIDATING_WEBHOOK_CONFIGURATION: ValidatingWebhookConfiguration =
    "validating_webhook_configuration_webhooks" => |o| count(o.webhooks.len()),
}
cells! { pub const MUTATING_WEBHOOK_CONFIGURATION: MutatingWebhookConfiguration =
    "mutating_webhook_configuration_webhooks" => |o| count(o.webhooks.len()),
}
cells! { pub const VALIDATING_ADMISSION_POLICY: ValidatingAdmissionPolicy =
    "validating_admission_policy_param_kind" => |o| param_kind(o.spec.param_kind.as_deref()),
    "validating_admission_policy_validations" => |o| count(o.spec.validations.len()),
}
cells! { pub const VALIDATING_ADMISSION_POLICY_BINDING: ValidatingAdmissionPolicyBinding =
    "validating_admission_policy_binding_param_ref" => |o| param_ref(o.spec.param_ref.as_deref()),
    "validating_admission_policy_binding_policy_name" => |o| o.spec.policy_name.clone(),
}
cells! { pub const MUTATING_ADMISSION_POLICY: MutatingAdmissionPolicy =
    "mutating_admission_policy_mutations" => |o| count(o.spec.mutations.len()),
    "mutating_admission_policy_param_kind" => |o| param_kind(o.spec.param_kind.as_deref()),
}
cells! { pub const MUTATING_ADMISSION_POLICY_BINDING: MutatingAdmissionPolicyBinding =
    "mutating_admission_policy_binding_param_ref" => |o| param_ref(o.spec.param_ref.as_deref()),
    "mutating_admission_policy_binding_policy_name" => |o| o.spec.policy_name.clone(),
}
cells! { pub const API_SERVICE: APIService =
    "api_service_available" => available,
    "api_service_service" => service,
}

fn param_kind(kind: Option<&ParamKind>) -> String {
    kind.map_or_else(|| UNSET.to_owned(), |k| format!("{}/{}", k.api_version, k.kind))
}

/// `namespace/name`, any namespace as `*`; a selector in the notation of Go.
fn param_ref(param: Option<&ParamRef>) -> String {
    let Some(param) = param else {
        return UNSET.to_owned();
    };
    match (param.name.as_str(), param.namespace.as_str(), &param.selector) {
        ("", _, Some(selector)) => go_selector(selector),
        ("", _, None) => UNSET.to_owned(),
        (name, "", _) => format!("*/{name}"),
        (name, namespace, _) => format!("{namespace}/{name}"),
    }
}

/// A LabelSelector as Go's generated `String` writes it.
fn go_selector(selector: &LabelSelector) -> String {
    let mut text = String::from("&LabelSelector{MatchLabels:map[string]string{");
    for (key, value) in &selector.match_labels {
        // Writing to a String does not fail.
        let _ = write!(text, "{key}: {value},");
    }
    text.push_str("},MatchExpressions:[]LabelSelectorRequirement{");
    for LabelSelectorRequirement {
        key, operator, values, ..
    } in &selector.match_expressions
    {
        let values = values.join(" ");
        let _ = write!(
            text,
            "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
        );
    }
    text + "},}"
}

/// The service that answers for the version, or that this server does.
fn service(o: &APIService) -> String {
    o.spec
        .service
        .as_ref()
        .map_or_else(|| "Local".to_owned(), |s| format!("{}/{}", s.namespace, s.name))
}

/// `True`, or what it is instead and why.
fn available(o: &APIService) -> String {
    match o.status.conditions.iter().find(|c| c.r#type == "Available") {
        None => "Unknown".to_owned(),
        Some(c) if c.status == "True" => c.status.clone(),
        Some(c) => format!("{} ({})", c.status, c.reason),
    }
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn parameters_are_named_or_selected() {
        for (text, expected) in [
            (r#"{"name":"p","namespace":"n"}"#, "n/p"),
            (r#"{"name":"p"}"#, "*/p"),
            (
                r#"{"namespace":"n","selector":{"matchLabels":{"c":"d","a":"b"},"matchExpressions":[{"key":"k","operator":"In","values":["x","y"]}]}}"#,
                "&LabelSelector{MatchLabels:map[string]string{a: b,c: d,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}",
            ),
        ] {
            let mut param = ParamRef::default();
            json::read(text.as_bytes(), &mut param).unwrap();
            assert_eq!(param_ref(Some(&param)), expected);
        }
        assert_eq!(param_ref(None), "<unset>");
    }

    #[test]
    fn services_that_fail_say_why() {
        let mut o = APIService::default();
        assert_eq!((service(&o), available(&o)), ("Local".into(), "Unknown".into()));
        let text = br#"{"spec":{"service":{"namespace":"n","name":"s"}},
            "status":{"conditions":[{"type":"Available","status":"False","reason":"ServiceNotFound"}]}}"#;
        json::read(text, &mut o).unwrap();
        assert_eq!(service(&o), "n/s");
        assert_eq!(available(&o), "False (ServiceNotFound)");
    }
}
