//! Decoding of request bodies, with the answers that kube-apiserver has for bodies that are none.

use keelson_machinery::budget::Budget;
use keelson_machinery::decode::{DecodeError, StrictProblem, TypeMeta};
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::json;
use keelson_machinery::managedfields;
use keelson_machinery::object::{self, Gvk, Kind, Object};
use keelson_machinery::protobuf;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::status::StatusError;
use keelson_machinery::yaml;
use keelson_registry::Registry;

use super::options::FieldValidation;
use crate::negotiate::Format;

/// What is known of a body beside the object in it.
#[derive(Default)]
pub struct Told {
    /// What a strict decoder has against the text, as far as that is to be told to the client.
    pub problems: Vec<String>,
    /// See [`managedfields::written_empty`].
    pub written_empty: FieldSet,
    /// The kind that a body names which may name another one ([`Naming::Custom`]), if it does.
    pub other_kind: Option<String>,
}

/// What a body has to say of its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Naming {
    /// What it says must be right.
    Built,
    /// It has to name kind and version; whether it is the right kind is a matter of validation.
    Custom,
}

/// Decodes a body as an object of a kind, with defaults not yet applied.
///
/// Errors: 400 for a body that is not of its format, of another kind, does not fit the kind, or, where the
/// validation is strict, has unknown or repeated fields.
pub fn decode_object(
    registry: &Registry,
    (kind, naming): (&KindDesc, Naming),
    format: Format,
    body: &[u8],
    validation: FieldValidation,
) -> Result<(Box<dyn Object>, Told), StatusError> {
    let mut object = kind.new_object();
    let (gvk, message) = (kind.gvk(), &mut *object);
    let body = Body {
        registry,
        kind: &gvk,
        also: &[],
        naming,
        body,
    };
    let told = body.decode(format, validation, message)?;
    Ok((object, told))
}

/// As [`decode_object`], into an empty message of a kind that need not be a resource.
pub fn decode_kind(
    registry: &Registry,
    expected: &Expected,
    format: Format,
    body: &[u8],
    validation: FieldValidation,
    object: &mut dyn Kind,
) -> Result<Told, StatusError> {
    let naming = Naming::Built;
    let body = Body {
        registry,
        kind: &expected.kind,
        also: expected.also,
        naming,
        body,
    };
    body.decode(format, validation, object)
}

/// The text of all that a strict decoder objects to.
pub fn strict_error(problems: &[String]) -> String {
    format!("strict decoding error: {}", problems.join(", "))
}

/// Repeated keys: a warning for each, or all in the one text that a strict decoder gives.
fn yaml_problems(repeated: Option<String>, validation: FieldValidation) -> Vec<String> {
    match (repeated, validation) {
        (None, _) => Vec::new(),
        (Some(text), FieldValidation::Strict) => vec![text],
        (Some(text), _) => text.lines().skip(1).map(|line| line.trim().to_owned()).collect(),
    }
}

/// The type that a body should be of.
pub struct Expected {
    pub kind: Gvk,
    /// Other `apiVersion`s of the same form.
    pub also: &'static [&'static str],
}

/// A body, and what it should be.
struct Body<'a> {
    registry: &'a Registry,
    kind: &'a Gvk,
    /// As of [`Expected`].
    also: &'static [&'static str],
    naming: Naming,
    body: &'a [u8],
}

impl Body<'_> {
    fn decode(&self, format: Format, validation: FieldValidation, object: &mut dyn Kind) -> Result<Told, StatusError> {
        let mut written_empty = FieldSet::EMPTY;
        let (named, problems) = match format {
            Format::Protobuf => (self.protobuf(object)?, Vec::new()),
            Format::Json => {
                let found = self.json(self.body, object)?;
                written_empty = managedfields::written_empty(self.body, object.as_reflect());
                found
            }
            Format::Yaml => {
                let (json, repeated) =
                    yaml::to_json_strict(self.body).map_err(|e| self.unrecognized(&e.to_string()))?;
                let (named, found) = self.json(&json, object)?;
                written_empty = managedfields::written_empty(&json, object.as_reflect());
                let mut problems = yaml_problems(repeated, validation);
                problems.extend(found);
                (named, problems)
            }
        };
        let problems = match validation {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Strict if !problems.is_empty() => {
                return Err(self.unhandled(&named, &strict_error(&problems)));
            }
            _ => problems,
        };
        Ok(Told {
            problems,
            written_empty,
            other_kind: (named.kind != *self.kind.kind && !named.kind.is_empty()).then_some(named.kind),
        })
    }

    fn protobuf(&self, object: &mut dyn Kind) -> Result<TypeMeta, StatusError> {
        let unknown = protobuf::decode_envelope(self.body).map_err(|e| self.unrecognized(&e.to_string()))?;
        let named = TypeMeta {
            api_version: unknown.api_version.into_owned(),
            kind: unknown.kind.into_owned(),
        };
        self.check_type(&named)?;
        protobuf::read_message_within(unknown.raw, object.as_reflect_mut(), &Budget::of_request())
            .map_err(|e| self.unread(&named, &e))?;
        Ok(named)
    }

    /// The usual document says its type early, once and in the right case. Whatever is not so is looked at again.
    fn json(&self, json: &[u8], object: &mut dyn Kind) -> Result<(TypeMeta, Vec<String>), StatusError> {
        let first = json::type_meta(json);
        let usual = first.and_then(|named| {
            let problems = json::read_within(json, object.as_reflect_mut(), &Budget::of_request())?;
            // An empty list is as good as none where metadata is read out of a tree.
            if self.naming == Naming::Built {
                managedfields::mark_reset(json, object.as_reflect_mut());
            }
            Ok((named, problems))
        });
        let named = match &usual {
            Ok((named, problems)) if !names_type_oddly(problems) => named.clone(),
            // The rest is not even looked at.
            Err(error @ DecodeError::TooLarge) => return Err(StatusError::entity_too_large(error)),
            _ => self.type_of_all(json)?,
        };
        self.check_type(&named)?;
        match usual {
            Ok((_, problems)) => Ok((named, problems.iter().map(ToString::to_string).collect())),
            Err(e) => Err(self.unread(&named, &e)),
        }
    }

    fn type_of_all(&self, json: &[u8]) -> Result<TypeMeta, StatusError> {
        json::type_meta_of_all(json)
            .map_err(|e: DecodeError| self.unrecognized(&format!("couldn't get version/kind; json parse error: {e}")))
    }

    fn check_type(&self, named: &TypeMeta) -> Result<(), StatusError> {
        if self.naming == Naming::Custom {
            return self.check_custom_type(named);
        }
        if named.kind == *self.kind.kind && self.also.contains(&named.api_version.as_str()) {
            return Ok(());
        }
        check_type(self.registry, self.kind, named).map_err(|fault| match fault {
            TypeFault::Malformed(why) => self.unrecognized(&why),
            TypeFault::OtherVersion(named) => StatusError::bad_request(format!(
                "the API version in the data ({named}) does not match the expected API version ({})",
                self.kind.api_version()
            )),
            TypeFault::Unknown(why) | TypeFault::OtherKind(why) => self.unhandled(named, &why),
        })
    }

    fn check_custom_type(&self, named: &TypeMeta) -> Result<(), StatusError> {
        let is_version = named.api_version.matches('/').count() <= 1;
        if named.kind.is_empty() || !is_version {
            let shown = json::lossy_text(self.body);
            return Err(self.unrecognized(&format!("Object 'Kind' is missing in '{shown}'")));
        }
        let expected = self.kind.api_version();
        if named.api_version == expected {
            return Ok(());
        }
        Err(StatusError::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({expected})",
            named.api_version,
        )))
    }

    fn unread(&self, named: &TypeMeta, error: &DecodeError) -> StatusError {
        match error {
            DecodeError::TooLarge => StatusError::entity_too_large(error),
            error => self.unhandled(named, &error.to_string()),
        }
    }

    fn unhandled(&self, named: &TypeMeta, why: &str) -> StatusError {
        let want = self.kind;
        let kind = if named.kind.is_empty() {
            &*want.kind
        } else {
            &*named.kind
        };
        let version = match named.api_version.rsplit('/').next() {
            Some(version) if !named.api_version.is_empty() => version,
            _ => &want.version,
        };
        StatusError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            want.kind
        ))
    }

    fn unrecognized(&self, why: &str) -> StatusError {
        StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            self.kind.kind,
            summary(self.body)
        ))
    }
}

/// Why what a patch has made is no object of its kind, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum DocumentFault {
    #[error("couldn't get version/kind; json parse error: {0}")]
    TypeMeta(DecodeError),
    /// It says that it is of another type.
    #[error("{0}")]
    Type(String),
    #[error("Object 'Kind' is missing in '{0}'")]
    NoKind(String),
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// How the type that a document names differs from the one that is wanted, with the reason for the client.
pub(super) enum TypeFault {
    /// `apiVersion` has too many parts.
    Malformed(String),
    /// Nobody knows such a type.
    Unknown(String),
    OtherKind(String),
    /// The kind is the right one; this is the `apiVersion`.
    OtherVersion(String),
}

/// `apiVersion` and `kind` may be missing; what is there must be what is wanted.
pub(super) fn check_type(registry: &Registry, want: &Gvk, named: &TypeMeta) -> Result<(), TypeFault> {
    let kind = if named.kind.is_empty() {
        &*want.kind
    } else {
        &*named.kind
    };
    let api_version = match named.api_version.as_str() {
        "" | "/" => want.api_version(),
        named => named.to_owned(),
    };
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version.as_str()),
        Some((_, version)) if version.contains('/') => {
            return Err(TypeFault::Malformed(format!(
                "unexpected GroupVersion string: {api_version}"
            )));
        }
        Some(parts) => parts,
    };
    if group == want.group && version == want.version && kind == want.kind {
        return Ok(());
    }
    if !registry.knows(group, version, kind) {
        let api_version = object::api_version(group, version);
        return Err(TypeFault::Unknown(object::not_registered(kind, &api_version)));
    }
    if group == want.group && kind == want.kind {
        return Err(TypeFault::OtherVersion(api_version));
    }
    Err(TypeFault::OtherKind(format!(
        "converting ({version}.{kind}) to ({}.{}): unknown conversion",
        internal_package(&want.group),
        want.kind
    )))
}

/// Whether a document says its type more than once, or with keys that are written otherwise.
fn names_type_oddly(problems: &[StrictProblem]) -> bool {
    problems.iter().any(|problem| json::names_type(&problem.path))
}

/// The name of the package that holds a group's internal types, as conversion errors show it.
fn internal_package(group: &str) -> &str {
    match group {
        // Both Event kinds are one type inside.
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or(group),
    }
}

/// Bytes of a refused body that the error shows.
const SHOWN_BYTES: usize = 30;

/// The beginning of a body: text of what looks like a JSON object, else hexadecimal.
fn summary(body: &[u8]) -> String {
    if body.is_empty() {
        return "<empty>".into();
    }
    let shown = body.get(..SHOWN_BYTES).unwrap_or(body);
    let mut text = match body.first() {
        Some(b'{') => json::lossy_text(shown).into_owned(),
        _ => shown.iter().map(|b| format!("{b:02x}")).collect(),
    };
    if body.len() > SHOWN_BYTES {
        text.push_str(" ...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_shown_as_text_or_hexadecimal() {
        for (body, want) in [
            (&b""[..], "<empty>"),
            (b"{\"a\":1", "{\"a\":1"),
            (b" {", "207b"),
            (
                b"{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaa",
                "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaa",
            ),
            (
                b"{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaab",
                "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaa ...",
            ),
            (
                "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaa日本".as_bytes(),
                "{\"a\":\"aaaaaaaaaaaaaaaaaaaaaa\u{fffd}\u{fffd} ...",
            ),
        ] {
            assert_eq!(summary(body), want);
        }
    }

    #[test]
    fn packages_of_groups() {
        for (group, want) in [
            ("", "core"),
            ("apps", "apps"),
            ("events.k8s.io", "core"),
            ("rbac.authorization.k8s.io", "rbac"),
        ] {
            assert_eq!(internal_package(group), want);
        }
    }
}
