//! Faults of the conditions of a request for a certificate.

use keelson_api::certificates_k8s_io::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition as Condition,
};

use crate::faults::{Faults, Unique};

/// Conditions that say what became of the request.
pub const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// Conditions that stay once they are there, and are either there or not.
const LASTING: [&str; 3] = ["Approved", "Denied", "Failed"];

fn has(o: &CertificateSigningRequest, ty: &str) -> bool {
    o.status.conditions.iter().any(|c| c.r#type == ty)
}

/// Checks the conditions of a changed request. `f` stands at its status.
pub fn check(f: &mut Faults<'_>, new: &CertificateSigningRequest, old: &CertificateSigningRequest) {
    alone(f, &new.status.conditions);
    for ty in LASTING.into_iter().filter(|ty| has(old, ty) && !has(new, ty)) {
        let text = format!("updates may not remove a condition of type {ty:?}");
        f.at("conditions").forbidden(text);
    }
}

/// Decisions that a write adds which may not decide.
pub fn decisions_added(f: &mut Faults<'_>, new: &CertificateSigningRequest, old: &CertificateSigningRequest) {
    for ty in DECISIONS.into_iter().filter(|ty| has(new, ty) && !has(old, ty)) {
        let text = format!("updates may not add a condition of type {ty:?}");
        f.at("conditions").forbidden(text);
    }
}

fn alone(f: &mut Faults<'_>, conditions: &[Condition]) {
    let (mut seen, mut decision) = (Unique::default(), "");
    let mut f = f.at("conditions");
    for (place, condition) in conditions.iter().enumerate() {
        let (mut item, ty) = (f.index(place), condition.r#type.as_str());
        item.at("type").filled(ty);
        let known: &[&str] = match LASTING.contains(&ty) {
            true => &["True"],
            false => &["False", "True", "Unknown"],
        };
        item.at("status").one_of_filled(&condition.status, known);
        seen.check(&mut item.at("type"), ty);
        if DECISIONS.contains(&ty) {
            let is_other = !decision.is_empty() && decision != ty;
            f.invalid_if(is_other, ty, "Approved and Denied conditions are mutually exclusive");
            decision = ty;
        }
        if f.is_full() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_status;
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
            let found = of_status(|f| check(f, &with(conditions), &old));
            assert_eq!(lines(&found), expected, "{conditions}");
        }
    }
}
