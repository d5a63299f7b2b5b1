//! Requests of kubelets for certificates of pods: the signer of one issues, denies or fails it once, and needs the
//! right to.

use keelson_api::certificates_k8s_io::v1beta1::{PodCertificateRequest, PodCertificateRequestStatus as Status};
use keelson_machinery::equality::equal;
use keelson_machinery::field::text::quote;
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::time::Time;
use keelson_registry::write::Part;
use keelson_registry::{Answer, Confirming, Context, Kept, KindCode, Strategy};

use super::pod_issued;
use super::signers::may;
use crate::cells;
use crate::faults::{self, Faults};
use crate::status_alone::StatusAlone;

/// Conditions that end a request.
const ENDS: [&str; 3] = ["Issued", "Denied", "Failed"];

/// Registers the rules of these requests.
pub fn register(code: &mut KindCode) {
    code.kind::<PodCertificateRequest>()
        .strategy(PodCertificateRequestStrategy)
        .kept([Kept::at("spec")])
        .cells(cells::certificates::POD_CERTIFICATE_REQUEST);
}

/// The rules of requests for certificates of pods.
struct PodCertificateRequestStrategy;

impl Strategy for PodCertificateRequestStrategy {
    type Object = PodCertificateRequest;

    /// Whoever changes the status acts for the signer.
    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, PodCertificateRequest>,
        faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        let old = write.old?;
        if faulty || write.part != Part::Status || equal(&write.new.status, &old.status) {
            return None;
        }
        Some(Box::pin(async move {
            let signer = &old.spec.signer_name;
            let mut errors = ErrorList::default();
            if !may(context, "sign", signer).await {
                let (user, signer) = (quote(&context.user.name), quote(signer));
                let why = format!("User {user} is not permitted to \"sign\" for signer {signer}");
                errors.push(FieldError::forbidden(&Path::new("spec").child("signerName"), why));
            }
            Ok(errors)
        }))
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        StatusAlone.reset_fields(part)
    }

    fn prepare_for_status_update(
        &self,
        context: &Context,
        new: &mut PodCertificateRequest,
        old: &PodCertificateRequest,
    ) {
        StatusAlone.prepare_for_status_update(context, new, old);
    }

    fn validate_status_update(
        &self,
        context: &Context,
        new: &PodCertificateRequest,
        old: &PodCertificateRequest,
    ) -> ErrorList {
        faults::of_status(|f| check(f, new, old, context.now))
    }
}

/// Checks a change of the status. `f` stands at it.
fn check(f: &mut Faults<'_>, new: &PodCertificateRequest, old: &PodCertificateRequest, now: Time) {
    let (status, before) = (&new.status, f.count());
    of_conditions(f, status);
    if f.count() > before {
        return;
    }
    let is_changed = || !equal(status, &old.status);
    let (is_wrong, why) = if ended(&old.status, &ENDS) {
        let why = "immutable after PodCertificateRequest is issued, denied, or failed";
        (is_changed(), why)
    } else if ended(status, &["Denied", "Failed"]) {
        let alone = Status {
            conditions: status.conditions.clone(),
            ..Status::default()
        };
        let why = "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
        (!equal(status, &alone), why)
    } else if ended(status, &["Issued"]) {
        return f.extend(pod_issued::validate(status, &old.spec, now));
    } else {
        let why = r#"status is immutable unless transitioning to "Issued", "Denied", or "Failed""#;
        (is_changed(), why)
    };
    f.invalid_if(is_wrong, BadValue::Omitted, why);
}

fn ended(status: &Status, types: &[&str]) -> bool {
    let ends = |ty: &str, is: &str| types.contains(&ty) && is == "True";
    status.conditions.iter().any(|c| ends(&c.r#type, &c.status))
}

/// At most one end, which holds, and nothing else.
fn of_conditions(f: &mut Faults<'_>, status: &Status) {
    let mut ends = 0;
    for (place, condition) in status.conditions.iter().enumerate() {
        if f.is_full() {
            break;
        }
        // kube-apiserver says the place as a name.
        let (place, kind) = (format!("[{place}]"), condition.r#type.as_str());
        let mut list = f.at("conditions");
        let mut f = list.at(&place);
        f.at("type").one_of(kind, &ENDS);
        if !ENDS.contains(&kind) {
            continue;
        }
        ends += 1;
        let why = r#"There may be at most one condition with type "Issued", "Denied", or "Failed""#;
        f.at("type").invalid_if(ends > 1, kind, why);
        f.at("status").one_of(&condition.status, &["True"]);
    }
    f.each(
        "conditions",
        status.conditions.iter().take(ENDS.len()),
        |f, condition| {
            f.at("lastTransitionTime")
                .required_if(condition.last_transition_time.is_zero(), "");
            f.at("reason").filled(&condition.reason);
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    fn with(status: &str) -> PodCertificateRequest {
        read(&format!(
            r#"{{"spec":{{"signerName":"example.com/a"}},"status":{status}}}"#
        ))
    }

    fn condition(ty: &str, status: &str) -> String {
        format!(r#"{{"type":"{ty}","status":"{status}","reason":"R","lastTransitionTime":"2023-11-14T22:13:20Z"}}"#)
    }

    fn found(new: &str, old: &str) -> String {
        lines(&PodCertificateRequestStrategy.validate_status_update(&context(), &with(new), &with(old)))
    }

    #[test]
    fn a_request_ends_once() {
        let (denied, failed) = (condition("Denied", "True"), condition("Failed", "True"));
        let ended = format!(r#"{{"conditions":[{denied}]}}"#);
        assert_eq!(found(&ended, "{}"), "");
        assert_eq!(found(&ended, &ended), "");
        assert_eq!(
            found(&format!(r#"{{"conditions":[{failed}]}}"#), &ended),
            "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"
        );
        assert_eq!(
            found(r#"{"certificateChain":"a"}"#, "{}"),
            r#"status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed""#
        );
        assert_eq!(
            found(&format!(r#"{{"conditions":[{denied}],"certificateChain":"a"}}"#), "{}"),
            "status: Invalid value: non-condition status fields must be empty when denying or failing the \
             PodCertificateRequest"
        );
    }

    #[test]
    fn conditions_are_ends() {
        let (denied, failed) = (condition("Denied", "True"), condition("Failed", "False"));
        assert_eq!(
            found(&format!(r#"{{"conditions":[{denied},{failed}]}}"#), "{}"),
            "status.conditions.[1].type: Invalid value: \"Failed\": There may be at most one condition with type \
             \"Issued\", \"Denied\", or \"Failed\"\n\
             status.conditions.[1].status: Unsupported value: \"False\": supported values: \"True\""
        );
        assert_eq!(
            found(r#"{"conditions":[{"type":"Ready","status":"True"}]}"#, "{}"),
            "status.conditions.[0].type: Unsupported value: \"Ready\": supported values: \"Issued\", \"Denied\", \
             \"Failed\"\n\
             status.conditions[0].lastTransitionTime: Required value\n\
             status.conditions[0].reason: Required value"
        );
    }
}
