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
        faults(new, old, context.now)
    }
}

fn faults(new: &PodCertificateRequest, old: &PodCertificateRequest, now: Time) -> ErrorList {
    let mut errors = of_conditions(&new.status);
    if !errors.is_empty() {
        return errors;
    }
    let path = Path::new("status");
    let unchanged = || equal(&new.status, &old.status);
    let fault = if ended(&old.status, &ENDS) {
        let why = "immutable after PodCertificateRequest is issued, denied, or failed";
        (!unchanged()).then_some(why)
    } else if ended(&new.status, &["Denied", "Failed"]) {
        let alone = Status {
            conditions: new.status.conditions.clone(),
            ..Status::default()
        };
        let why = "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
        (!equal(&new.status, &alone)).then_some(why)
    } else if ended(&new.status, &["Issued"]) {
        errors.extend(pod_issued::validate(&new.status, &old.spec, now));
        None
    } else {
        let why = r#"status is immutable unless transitioning to "Issued", "Denied", or "Failed""#;
        (!unchanged()).then_some(why)
    };
    errors.extend(fault.map(|why| FieldError::invalid(&path, BadValue::Omitted, why)));
    errors
}

fn ended(status: &Status, types: &[&str]) -> bool {
    let ends = |ty: &str, is: &str| types.contains(&ty) && is == "True";
    status.conditions.iter().any(|c| ends(&c.r#type, &c.status))
}

/// At most one end, which holds, and nothing else.
fn of_conditions(status: &Status) -> ErrorList {
    let (path, mut ends) = (Path::new("status").child("conditions"), 0);
    let mut errors = ErrorList::default();
    for (place, condition) in status.conditions.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        // kube-apiserver says the place as a name.
        let at = path.child(format!("[{place}]"));
        if !ENDS.contains(&&*condition.r#type) {
            errors.push(FieldError::not_supported(&at.child("type"), &*condition.r#type, &ENDS));
            continue;
        }
        ends += 1;
        if ends > 1 {
            let why = r#"There may be at most one condition with type "Issued", "Denied", or "Failed""#;
            errors.push(FieldError::invalid(&at.child("type"), &*condition.r#type, why));
        }
        if condition.status != "True" {
            errors.push(FieldError::not_supported(
                &at.child("status"),
                &*condition.status,
                &["True"],
            ));
        }
    }
    for (place, condition) in status.conditions.iter().enumerate().take(ENDS.len()) {
        let at = path.index(place);
        if condition.last_transition_time.is_zero() {
            errors.push(FieldError::required(&at.child("lastTransitionTime"), ""));
        }
        if condition.reason.is_empty() {
            errors.push(FieldError::required(&at.child("reason"), ""));
        }
    }
    errors
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
