//! The AdmissionReview that a webhook answers with.

use std::collections::BTreeMap;

use bytes::Bytes;
use keelson_api::admission_k8s_io::{v1, v1beta1};
use keelson_machinery::meta::v1::Status;
use keelson_machinery::object::{Gvk, not_registered};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;
use keelson_machinery::{json, yaml};
use keelson_net::client::{self, document};

use super::review::ReviewVersion;

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";
/// Kinds of the version v1 that every reader knows.
const EVERYWHERE: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];
const JSON_PATCH: &str = "JSONPatch";

/// What a webhook says.
#[derive(Default)]
pub(super) struct Answer {
    pub allowed: bool,
    /// Of one that denies.
    pub status: Option<Box<Status>>,
    pub patch: Bytes,
    pub patch_type: String,
    pub annotations: BTreeMap<String, String>,
    pub warnings: Vec<String>,
}

/// What is read of an answer. The error is the text of an [`Unusable`], which nobody tells apart.
type Read<T> = Result<T, String>;

/// Why an answer is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It can't be read.
    Unreadable(String),
    /// It does not answer the question.
    Invalid(String),
}

impl Answer {
    /// Reads what came back. `mutates`: it may hold a patch.
    ///
    /// # Errors
    /// It is no review, or not the one that was asked for.
    pub fn read(got: &client::Answer, version: ReviewVersion, uid: &str, mutates: bool) -> Result<Answer, Unusable> {
        let read = of_yaml(got).map_err(Unusable::Unreadable)?;
        let got = read.as_ref().unwrap_or(got);
        let named = named_kind(got, version).map_err(Unusable::Unreadable)?;
        match version {
            ReviewVersion::V1 => {
                let mut review = v1::AdmissionReview::default();
                decode(got, &mut review)?;
                check_v1(review, &named, uid, mutates).map_err(Unusable::Invalid)
            }
            ReviewVersion::V1beta1 => {
                let mut review = v1beta1::AdmissionReview::default();
                decode(got, &mut review)?;
                let response = review.response.ok_or_else(absent).map_err(Unusable::Invalid)?;
                Ok(of_v1beta1(*response, mutates))
            }
        }
    }

    /// The refusal of a webhook that denies.
    pub fn refusal(self, webhook: &str) -> StatusError {
        let mut status = self.status.map(|status| *status).unwrap_or_default();
        let denied = format!("admission webhook {webhook:?} denied the request");
        status.code = status.code.max(400);
        status.message = match (status.message.as_str(), status.reason.as_str()) {
            ("", "") => format!("{denied} without explanation"),
            ("", why) | (why, _) => format!("{denied}: {why}"),
        };
        StatusError::from_status(&status)
    }
}

/// An answer in YAML as one in JSON, whatever it calls itself; `None`: it looks like JSON, or is empty.
fn of_yaml(got: &client::Answer) -> Read<Option<client::Answer>> {
    let text = got.body.trim_ascii_start();
    if text.is_empty() || text.starts_with(b"{") {
        return Ok(None);
    }
    let json = yaml::to_json(&got.body).map_err(|error| error.to_string())?;
    Ok(Some(client::Answer {
        status: got.status,
        headers: got.headers.clone(),
        body: json.into(),
    }))
}

fn absent() -> String {
    "webhook response was absent".to_owned()
}

fn decode(got: &client::Answer, review: &mut dyn Reflect) -> Result<(), Unusable> {
    let read = json::read(&got.body, review);
    read.map(drop).map_err(|error| Unusable::Unreadable(error.to_string()))
}

/// The kind that an answer names.
fn named_kind(got: &client::Answer, version: ReviewVersion) -> Read<Gvk> {
    let (_, number) = version.api_version().split_once('/').unwrap_or_default();
    let read = document(got, GROUP, number, KIND).map_err(|error| error.to_string());
    let named = json::type_meta(&got.body).map_err(|error| error.to_string());
    match (read, named) {
        (Ok(_), Ok(named)) => {
            let (group, version) = named.api_version.split_once('/').unwrap_or(("", &named.api_version));
            Ok(Gvk::new(group.to_owned(), version.to_owned(), named.kind))
        }
        (Err(_), Ok(named)) if !is_known(&named.api_version, &named.kind) => {
            let given = match named.api_version.as_str() {
                "" => version.api_version(),
                given => given,
            };
            Err(not_registered(&named.kind, given))
        }
        (Err(why), _) | (_, Err(why)) => Err(why),
    }
}

/// Whether these are of a kind that a reader of reviews knows, or of none.
fn is_known(api_version: &str, kind: &str) -> bool {
    let versions = [ReviewVersion::V1, ReviewVersion::V1beta1].map(ReviewVersion::api_version);
    let is_everywhere = api_version == "v1" && EVERYWHERE.contains(&kind);
    is_everywhere
        || (api_version.is_empty() && kind.is_empty())
        || ((api_version.is_empty() || versions.contains(&api_version)) && (kind.is_empty() || kind == KIND))
}

fn check_v1(review: v1::AdmissionReview, named: &Gvk, uid: &str, mutates: bool) -> Read<Answer> {
    let response = *review.response.ok_or_else(absent)?;
    if response.uid != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", response.uid));
    }
    let wanted = Gvk::new_static(GROUP, "v1", KIND);
    if *named != wanted {
        return Err(format!(
            "expected webhook response of {}, got {}",
            shown(&wanted),
            shown(named)
        ));
    }
    let has_patch = !response.patch.is_empty();
    match (mutates, &response.patch_type) {
        (true, None) if has_patch => {
            return Err("webhook returned response.patch but not response.patchType".to_owned());
        }
        (true, Some(_)) if !has_patch => {
            return Err("webhook returned response.patchType but not response.patch".to_owned());
        }
        (true, Some(other)) if other.is_empty() => {
            return Err("webhook returned invalid response.patchType of \"\"".to_owned());
        }
        (false, _) if has_patch => return Err("validating webhook may not return response.patch".to_owned()),
        (false, Some(_)) => return Err("validating webhook may not return response.patchType".to_owned()),
        _ => {}
    }
    Ok(Answer {
        allowed: response.allowed,
        status: response.status,
        patch: response.patch,
        patch_type: response.patch_type.unwrap_or_default(),
        annotations: response.audit_annotations,
        warnings: response.warnings,
    })
}

fn of_v1beta1(response: v1beta1::AdmissionResponse, mutates: bool) -> Answer {
    let patch = if mutates { response.patch } else { Bytes::new() };
    Answer {
        allowed: response.allowed,
        status: response.status,
        patch_type: if patch.is_empty() {
            String::new()
        } else {
            JSON_PATCH.to_owned()
        },
        patch,
        annotations: response.audit_annotations,
        warnings: response.warnings,
    }
}

/// As Go shows a kind: with a slash where there is no group.
fn shown(kind: &Gvk) -> String {
    format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, version: ReviewVersion, mutates: bool) -> Result<Answer, Unusable> {
        let got = client::Answer {
            status: 200,
            headers: Default::default(),
            body: Bytes::copy_from_slice(body.as_bytes()),
        };
        Answer::read(&got, version, "u", mutates)
    }

    fn review(response: &str) -> String {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#)
    }

    fn fault(body: &str, mutates: bool) -> Unusable {
        let got = read(body, ReviewVersion::V1, mutates);
        got.map(|answer| answer.allowed).unwrap_err()
    }

    #[test]
    fn answers_of_other_kinds_are_unreadable() {
        for (body, want) in [
            ("", "0-length response with status code: 200 and content type: "),
            (
                r#"{"apiVersion":"admission.k8s.io/v1","kind":"Other"}"#,
                "no kind \"Other\" is registered for version \"admission.k8s.io/v1\" in scheme \
                 \"pkg/runtime/scheme.go:111\"",
            ),
            (
                r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#,
                "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
            ),
            (
                r#"{"apiVersion":"v1","kind":"Status"}"#,
                "converting (v1.Status) to (v1.AdmissionReview): unknown conversion",
            ),
        ] {
            assert_eq!(fault(body, false), Unusable::Unreadable(want.to_owned()), "{body}");
        }
    }

    #[test]
    fn answers_may_be_yaml() {
        let answer = "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\n\
            response: {uid: u, allowed: true, warnings: [careful]}\n";
        let answer = read(answer, ReviewVersion::V1, false).unwrap();
        assert!(answer.allowed);
        assert_eq!(answer.warnings, ["careful"]);
        let Unusable::Unreadable(why) = fault("a: [", false) else {
            unreachable!("it can't be read");
        };
        assert!(why.starts_with("yaml: "), "{why}");
        let Unusable::Unreadable(why) = fault("no review", false) else {
            unreachable!("it can't be read");
        };
        assert!(why.contains("cannot unmarshal string"), "{why}");
    }

    #[test]
    fn answers_that_contradict_the_question_or_themselves_are_invalid() {
        const PATCH: &str = r#"{"uid":"u","patch":"W10="}"#;
        for (response, mutates, want) in [
            ("null", false, "webhook response was absent"),
            (r#"{"uid":"v"}"#, false, "expected response.uid=\"u\", got \"v\""),
            (
                PATCH,
                true,
                "webhook returned response.patch but not response.patchType",
            ),
            (
                r#"{"uid":"u","patchType":"JSONPatch"}"#,
                true,
                "webhook returned response.patchType but not response.patch",
            ),
            (PATCH, false, "validating webhook may not return response.patch"),
            (
                r#"{"uid":"u","patchType":"x"}"#,
                false,
                "validating webhook may not return response.patchType",
            ),
        ] {
            let want = Unusable::Invalid(want.to_owned());
            assert_eq!(fault(&review(response), mutates), want, "{response}");
        }
        let want = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=";
        let got = fault(r#"{"response":{"uid":"u"}}"#, false);
        assert_eq!(got, Unusable::Invalid(want.to_owned()));
    }

    #[test]
    fn refusals_are_failures_that_name_the_webhook() {
        for (status, code, message) in [
            (
                "null",
                400,
                "admission webhook \"w\" denied the request without explanation",
            ),
            (
                r#"{"code":200,"message":"m"}"#,
                400,
                "admission webhook \"w\" denied the request: m",
            ),
            (
                r#"{"code":418,"reason":"r"}"#,
                418,
                "admission webhook \"w\" denied the request: r",
            ),
        ] {
            let answer = read(
                &review(&format!(r#"{{"uid":"u","status":{status}}}"#)),
                ReviewVersion::V1,
                false,
            )
            .unwrap();
            let refusal = answer.refusal("w");
            assert_eq!((refusal.code, refusal.message.as_str()), (code, message));
        }
    }

    #[test]
    fn older_answers_need_neither_uid_nor_type() {
        let answer = read(
            r#"{"response":{"allowed":true,"patch":"W10="}}"#,
            ReviewVersion::V1beta1,
            true,
        )
        .unwrap();
        assert!(answer.allowed);
        assert_eq!((&*answer.patch, answer.patch_type.as_str()), (&b"[]"[..], "JSONPatch"));
        let answer = read(r#"{"response":{"patch":"W10="}}"#, ReviewVersion::V1beta1, false).unwrap();
        assert!(answer.patch.is_empty());
    }
}
