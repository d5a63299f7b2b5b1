//! Faults of the conditions of a request for a certificate.

use std::collections::BTreeSet;

use keelson_api::certificates_k8s_io::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition as Condition,
};
use keelson_machinery::field::{ErrorList, FieldError, Path};

/// Conditions that say what became of the request.
pub const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// Conditions that stay once they are there, and are either there or not.
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Faults of a changed request.
pub fn validate(new: &CertificateSigningRequest, old: &CertificateSigningRequest) -> ErrorList {
    let path = Path::new("status").child("conditions");
    let (new, old) = (&new.status.conditions, &old.status.conditions);
    let mut errors = alone(new, &path);
    let has = |list: &[Condition], ty: &str| list.iter().any(|c| c.r#type == ty);
    for ty in LASTING.into_iter().filter(|ty| has(old, ty) && !has(new, ty)) {
        let text = format!("updates may not remove a condition of type {ty:?}");
        errors.push(FieldError::forbidden(&path, text));
    }
    errors
}

/// Decisions that a write adds which may not decide.
pub fn decisions_added(new: &CertificateSigningRequest, old: &CertificateSigningRequest) -> ErrorList {
    let path = Path::new("status").child("conditions");
    let has = |o: &CertificateSigningRequest, ty: &str| o.status.conditions.iter().any(|c| c.r#type == ty);
    let mut errors = ErrorList::default();
    for ty in DECISIONS.into_iter().filter(|ty| has(new, ty) && !has(old, ty)) {
        let text = format!("updates may not add a condition of type {ty:?}");
        errors.push(FieldError::forbidden(&path, text));
    }
    errors
}

fn alone(conditions: &[Condition], path: &Path) -> ErrorList {
    let mut errors = ErrorList::default();
    let mut seen = BTreeSet::new();
    let mut decision = "";
    for (place, condition) in conditions.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let at = path.index(place);
        let ty = condition.r#type.as_str();
        if ty.is_empty() {
            errors.push(FieldError::required(&at.child("type"), ""));
        }
        errors.extend(status(condition, &at.child("status")));
        if !seen.insert(ty) {
            errors.push(FieldError::duplicate(&at.child("type"), ty));
        }
        if DECISIONS.contains(&ty) {
            if !decision.is_empty() && decision != ty {
                let text = "Approved and Denied conditions are mutually exclusive";
                errors.push(FieldError::invalid(path, ty, text));
            }
            decision = ty;
        }
    }
    errors
}

fn status(condition: &Condition, path: &Path) -> Option<FieldError> {
    let (status, lasting) = (condition.status.as_str(), LASTING.contains(&condition.r#type.as_str()));
    match status {
        "" => Some(FieldError::required(path, "")),
        "True" => None,
        _ if lasting => Some(FieldError::not_supported(path, status, &["True"])),
        "False" | "Unknown" => None,
        _ => Some(FieldError::not_supported(path, status, &["False", "True", "Unknown"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read};

    fn with(conditions: &str) -> CertificateSigningRequest {
        read(&format!(r#"{{"status":{{"conditions":{conditions}}}}}"#))
    }

    #[test]
    fn decisions_last_and_exclude_each_other() {
        let old = with(r#"[{"type":"Approved","status":"True"}]"#);
        for (conditions, expected) in [
            (
                r#"[{"type":"Approved","status":"True","reason":"r"},{"type":"Foo","status":"False"}]"#,
                "",
            ),
            (
                "[]",
                "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\"",
            ),
            (
                r#"[{"type":"Approved","status":"True"},{"type":"Denied","status":"True"}]"#,
                "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive",
            ),
            (
                r#"[{"type":"Approved","status":"False"}]"#,
                "status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\"",
            ),
            (
                r#"[{"type":"Approved","status":"True"},{"type":"Approved","status":"True"},{}]"#,
                "status.conditions[1].type: Duplicate value: \"Approved\"\n\
                 status.conditions[2].type: Required value\n\
                 status.conditions[2].status: Required value",
            ),
        ] {
            assert_eq!(lines(&validate(&with(conditions), &old)), expected, "{conditions}");
        }
    }
}
