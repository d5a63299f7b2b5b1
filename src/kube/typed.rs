//! Objects as the types of their kinds, and comparisons of typed parts.

use keelson_machinery::equality;
use keelson_machinery::field::BadValue;
use keelson_machinery::json;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::reflect::{Reflect, Value};
use keelson_machinery::status::StatusError;
use keelson_machinery::validation::declarative;

/// What a field that may not change says when it does.
pub const IMMUTABLE: &str = "field is immutable";

/// An object that was read as that of a resource, as a `T`. Strategies need none of this: theirs are typed.
pub fn typed<T: Reflect>(object: &dyn Object) -> Option<&T> {
    object.downcast_ref()
}

/// As [`typed`], for changes.
pub fn typed_mut<T: Reflect>(object: &mut dyn Object) -> Option<&mut T> {
    object.downcast_mut()
}

/// Whether an object is new, or its specification has changed.
pub fn is_new_generation<T: Object>(new: &T, old: Option<&T>) -> bool {
    old.is_none_or(|old| old.meta().generation != new.meta().generation)
}

/// Puts back the metadata that a write to the status of some kinds leaves alone.
pub fn keep_metadata(new: &mut dyn Object, old: &dyn Object) {
    let (new, old) = (new.meta_mut(), old.meta());
    new.labels.clone_from(&old.labels);
    new.annotations.clone_from(&old.annotations);
    new.finalizers.clone_from(&old.finalizers);
    new.owner_references.clone_from(&old.owner_references);
}

/// The same of kinds that leave nothing of it to the writer of a status.
pub fn keep_all_metadata(new: &mut dyn Object, old: &dyn Object) {
    keep_metadata(new, old);
    let (new, old) = (new.meta_mut(), old.meta());
    new.deletion_timestamp = old.deletion_timestamp;
    new.self_link.clone_from(&old.self_link);
}

/// The typed body of a request; an error would be a handler that is registered for another kind.
pub fn body<T: Reflect>(object: Box<dyn Kind>) -> Result<Box<T>, StatusError> {
    let found = object.gvk().clone();
    let message: Box<dyn Reflect> = object;
    message
        .into_any()
        .downcast()
        .map_err(|_| StatusError::internal_error(format!("no code takes a {found} here")))
}

/// A message as the value of a field error, which is written when a fault that is told takes it.
pub fn shown(message: &dyn Reflect) -> impl Into<BadValue> {
    BadValue::made_by(|| {
        let mut out = Vec::new();
        json::write(message, &mut out);
        BadValue::json(String::from_utf8_lossy(&out))
    })
}

/// The types that have JSON names in kube-apiserver too.
const META: &str = "io.k8s.apimachinery.";

/// The same in the form in which kube-apiserver holds it: all fields by their names in Go, whatever they say.
pub fn shown_internal(message: &dyn Reflect) -> impl Into<BadValue> {
    BadValue::made_by(|| BadValue::json(internal(message)))
}

fn internal(message: &dyn Reflect) -> String {
    let fields = message.desc().fields.iter().enumerate();
    let fields =
        fields.map(|(index, field)| format!("\"{}\":{}", go_name(&field.json), internal_value(message.get(index))));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn internal_value(value: Value<'_>) -> String {
    match value {
        Value::Message(message) if !message.desc().name.starts_with(META) => internal(message),
        Value::List(list) if list.is_empty() => "null".to_owned(),
        Value::List(list) => {
            let items: Vec<_> = (0..list.len()).map(|index| internal_value(list.get(index))).collect();
            format!("[{}]", items.join(","))
        }
        value => match declarative::shown(value) {
            BadValue::Text(json) => json,
            BadValue::Str(text) => serde_json::Value::from(text).to_string(),
            BadValue::Omitted => "null".to_owned(),
        },
    }
}

/// Abbreviations are in capitals.
fn go_name(json: &str) -> String {
    for (start, abbreviation) in [("se", "SE"), ("gmsa", "GMSA"), ("fs", "FS")] {
        if let Some(rest) = json
            .strip_prefix(start)
            .filter(|rest| rest.starts_with(char::is_uppercase))
        {
            return format!("{abbreviation}{rest}");
        }
    }
    let (first, rest) = json.split_at_checked(1).unwrap_or_default();
    format!("{}{rest}", first.to_ascii_uppercase())
}

/// A message that may be absent, as the value of a field error.
pub fn shown_option<T: Reflect>(message: Option<&T>) -> impl Into<BadValue> {
    message.map(|message| shown(message))
}

/// Why a text is no JSON that Go reads into `into`, a struct or a map, in its words.
pub fn object_fault(text: &[u8], into: &str) -> Option<String> {
    if let Err(fault) = json::validate(text) {
        return Some(fault.to_string());
    }
    let found = match text.iter().find(|b| !b.is_ascii_whitespace()) {
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        Some(b'-' | b'0'..=b'9') => "number",
        _ => return None,
    };
    Some(format!("json: cannot unmarshal {found} into Go value of type {into}"))
}

/// A list of texts as the value of a field error: one that says nothing is absent.
pub fn shown_texts(texts: &[String]) -> impl Into<BadValue> {
    (!texts.is_empty()).then_some(texts)
}

/// Whether two lists have equal messages in the same order.
pub fn same_list<T: Reflect>(a: &[T], b: &[T]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equality::equal(a, b))
}

/// Whether two messages that may be absent are equal.
pub fn same<T: Reflect>(a: Option<&T>, b: Option<&T>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => equality::equal(a, b),
        _ => false,
    }
}

/// JSON names of the fields that say something, but for some of them.
pub fn fields_beside<'m, T: Reflect + Default>(message: &'m T, names: &[&str]) -> Vec<&'m str> {
    let empty = T::default();
    let fields = message.desc().fields.iter().enumerate();
    let others = fields.filter(|(_, field)| !names.contains(&field.json.as_str()));
    others
        .filter(|(index, _)| !equality::equal_field(message, &empty, *index))
        .map(|(_, field)| field.json.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use keelson_api::core::v1::{SecurityContext, Taint};

    use super::*;
    use crate::testing::read;

    #[test]
    fn what_is_held_has_all_fields() {
        let taint: Taint = read(r#"{"key":"a","effect":"NoSchedule"}"#);
        let held = r#"{"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}"#;
        assert_eq!(shown_internal(&taint).into(), BadValue::json(held));
        let context: SecurityContext = read(
            r#"{"capabilities":{"drop":["ALL"]},"privileged":true,"seLinuxOptions":{"level":"x"},"windowsOptions":
            {"hostProcess":false}}"#,
        );
        let held = concat!(
            r#"{"Capabilities":{"Add":null,"Drop":["ALL"]},"Privileged":true,"#,
            r#""SELinuxOptions":{"User":"","Role":"","Type":"","Level":"x"},"WindowsOptions":{"GMSACredentialSpecName":"#,
            r#"null,"GMSACredentialSpec":null,"RunAsUserName":null,"HostProcess":false},"RunAsUser":null,"RunAsGroup":null,"#,
            r#""RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":null,"ProcMount":null,"#,
            r#""SeccompProfile":null,"AppArmorProfile":null}"#
        );
        assert_eq!(shown_internal(&context).into(), BadValue::json(held));
    }

    #[test]
    fn objects_are_read_from_json() {
        for (text, expected) in [
            ("{}", None),
            ("null", None),
            ("v", Some("invalid character 'v' looking for beginning of value")),
            ("{", Some("unexpected end of JSON input")),
            ("", Some("unexpected end of JSON input")),
            (" [1]", Some("json: cannot unmarshal array into Go value of type T")),
        ] {
            assert_eq!(object_fault(text.as_bytes(), "T").as_deref(), expected, "{text}");
        }
    }
}
