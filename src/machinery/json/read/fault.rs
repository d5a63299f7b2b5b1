//! Faults of documents: values that do not fit their fields, and keys that a strict decoder objects to.

use std::borrow::Cow;

use super::{MAX_PROBLEMS, Outcome, Reader, Segment, Style};
use crate::decode::{StrictKind, StrictProblem};
use crate::json_text as text;
use crate::json_text::scan::Text;
use crate::reflect::leaf::{GO_FIELD, GO_VALUE};
use crate::reflect::{LeafKind, MessageDesc, Type};

/// The Go struct that holds the type of a kind.
const TYPE_META: &str = "TypeMeta";
/// Bytes of the path of a problem: keys are as long as who sends them likes.
const MAX_PATH: usize = 4 * 1024;

impl Reader<'_> {
    /// `null` where a plain value stands changes nothing; anything else is of a wrong type.
    #[cold]
    pub(super) fn no_scalar(&mut self, go_type: &'static str) -> Outcome {
        if self.scan.peek() == Some(b'n') {
            return self.scan.literal("null");
        }
        let value = self.scan.skip_value()?;
        match self.style {
            Style::Decode => self.wrong(text::kind_name(value), go_type),
            Style::Restore => self.wrong_text(|| match (tree_kind(value), go_type) {
                ("int64", "string") => "cannot convert int64 to string".to_owned(),
                _ => format!("unrecognized type: {go_type}"),
            }),
        }
        Ok(())
    }

    #[cold]
    pub(super) fn no_message(&mut self, desc: &MessageDesc) -> Outcome {
        let value = self.scan.skip_value()?;
        match self.style {
            Style::Decode => self.wrong(text::kind_name(value), &go_name(&desc.name)),
            Style::Restore => self.wrong_text(|| format!("cannot restore struct from: {}", tree_kind(value))),
        }
        Ok(())
    }

    #[cold]
    pub(super) fn no_list(&mut self, go_type: impl Fn() -> String) -> Outcome {
        let value = self.scan.skip_value()?;
        match self.style {
            Style::Decode => self.wrong(text::kind_name(value), &go_type()),
            Style::Restore => self.wrong_text(|| format!("cannot restore slice from {}", tree_kind(value))),
        }
        Ok(())
    }

    #[cold]
    pub(super) fn no_map(&mut self, element: &Type) -> Outcome {
        let value = self.scan.skip_value()?;
        match self.style {
            Style::Decode => self.wrong(text::kind_name(value), &format!("map[string]{}", go_type(element))),
            Style::Restore => self.wrong_text(|| format!("cannot restore map from {}", tree_kind(value))),
        }
        Ok(())
    }

    #[cold]
    pub(super) fn wrong(&mut self, found: &str, go_type: &str) {
        let text = self.in_context(&format!("json: cannot unmarshal {found}"), go_type);
        self.wrong_text(|| text);
    }

    pub(super) fn wrong_text(&mut self, text: impl FnOnce() -> String) {
        self.wrong_value.get_or_insert_with(text);
    }

    /// The text of a type error with the field at hand.
    pub(super) fn in_context(&self, what: &str, go_type: &str) -> String {
        let mut fields: Vec<&str> = Vec::new();
        // Go names the struct whose object the field stands in: for inlined messages the outermost.
        let mut object: Option<&MessageDesc> = None;
        let mut inlined = false;
        let go_type = self.own_name(go_type);
        for segment in &self.path {
            let (name, owner) = match segment {
                Segment::Field(name, owner) => (*name, *owner),
                Segment::Inline(message, owner) => (message.short_name(), *owner),
                Segment::TypeMeta(owner) => (TYPE_META, *owner),
                Segment::Key(_) | Segment::Index(_) => continue,
            };
            if is_read_alone(name, owner) {
                fields.clear();
                continue;
            }
            fields.push(name);
            object = if inlined { object } else { Some(owner) };
            inlined = matches!(segment, Segment::Inline(..) | Segment::TypeMeta(_));
        }
        match object {
            Some(desc) => {
                format!(
                    "{what}{GO_FIELD}{}.{} of type {go_type}",
                    desc.short_name(),
                    fields.join(".")
                )
            }
            None => format!("{what}{GO_VALUE}{go_type}"),
        }
    }

    /// What Go calls the type of the value at hand, where the field around it gives it a name of its own.
    fn own_name<'n>(&'n self, go_type: &'n str) -> Cow<'n, str> {
        let is_named = |segment: &Segment<'_>| !matches!(segment, Segment::Key(_) | Segment::Index(_));
        let field = self.path.iter().rposition(is_named);
        let Some((at, Segment::Field(name, owner))) = field.map(|at| (at, &self.path[at])) else {
            return go_type.into();
        };
        let own: &str = owner.field(name).map_or("", |(_, field)| &field.details.go_type);
        own_name(go_type, own, self.path.len() - at - 1)
    }

    #[cold]
    pub(super) fn problem(&mut self, kind: StrictKind, key: Text<'_>) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Field(name, _) => push_key(&mut path, name),
                Segment::Key(key) => push_key(&mut path, &key.decode()),
                Segment::Index(index) => path.push_str(&format!("[{index}]")),
                Segment::Inline(..) | Segment::TypeMeta(_) => {}
            }
        }
        push_key(&mut path, &key.decode());
        let problem = StrictProblem { kind, path };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Whether the field is a struct within an object without one, such as the metadata of a custom object: Go reads it by
/// itself.
fn is_read_alone(name: &str, owner: &MessageDesc) -> bool {
    let is_struct = |ty: &Type| matches!(ty, Type::Message(desc) if !desc.is_dynamic());
    owner.is_dynamic() && owner.field(name).is_some_and(|(_, field)| is_struct(&field.ty))
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
    crate::field::text::cut(path, MAX_PATH);
}

/// The Go type that a value has in a tree.
fn tree_kind(json: &[u8]) -> &'static str {
    match text::kind_name(json) {
        "object" => "map",
        "array" => "slice",
        "number" if std::str::from_utf8(json).is_ok_and(|n| n.parse::<i64>().is_ok()) => "int64",
        "number" => "float64",
        other => other,
    }
}

/// `v1.PodSpec` of `io.k8s.api.core.v1.PodSpec`.
fn go_name(name: &str) -> String {
    let mut parts = name.rsplit('.');
    match (parts.next(), parts.next()) {
        (Some(last), Some(package)) => format!("{package}.{last}"),
        _ => name.to_owned(),
    }
}

/// A type whose values, or whose elements' ones, have a name of their own in Go: that of a value so many lists and maps
/// deep in the field.
fn own_name<'a>(go_type: &'a str, own: &'a str, depth: usize) -> Cow<'a, str> {
    if let Some((_, values)) = own.split_once(']').filter(|_| own.starts_with("map[")) {
        return match depth {
            0 => own.into(),
            1 => values.into(),
            _ => go_type.into(),
        };
    }
    let plain = ["string", "bool", "int32", "int64"]
        .into_iter()
        .find(|plain| go_type.ends_with(plain));
    match plain {
        _ if own.is_empty() => go_type.into(),
        Some(plain) => format!("{}{own}", &go_type[..go_type.len() - plain.len()]).into(),
        // A map of amounts has a name as a whole.
        None if go_type.starts_with("map[") => own.into(),
        None => go_type.into(),
    }
}

pub(super) fn list_type(element: &Type) -> String {
    format!("[]{}", go_type(element))
}

fn go_type(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Double => "float64".to_owned(),
        Type::String => "string".to_owned(),
        Type::Bytes => "[]uint8".to_owned(),
        Type::Message(desc) => go_name(&desc.name),
        Type::Leaf(kind) => go_leaf(*kind).to_owned(),
        Type::List(element) => list_type(&element.ty),
        Type::Any | Type::Untyped => "interface {}".to_owned(),
        Type::Map(element) => format!("map[string]{}", go_type(&element.ty)),
    }
}

fn go_leaf(kind: LeafKind) -> &'static str {
    match kind {
        LeafKind::Quantity => "resource.Quantity",
        LeafKind::IntOrString => "intstr.IntOrString",
        LeafKind::Time => "v1.Time",
        LeafKind::MicroTime => "v1.MicroTime",
        LeafKind::Duration => "v1.Duration",
        LeafKind::Raw => "runtime.RawExtension",
        LeafKind::Union => "interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::own_name;

    #[test]
    fn types_with_names_are_called_by_them() {
        for (go_type, own, depth, expected) in [
            ("string", "", 0, "string"),
            ("string", "v1.PodPhase", 0, "v1.PodPhase"),
            ("[]string", "v1.KeyUsage", 0, "[]v1.KeyUsage"),
            ("string", "v1.KeyUsage", 1, "v1.KeyUsage"),
            ("map[string]resource.Quantity", "v1.ResourceList", 0, "v1.ResourceList"),
            ("map[string]string", "map[v1.Name]v1.Status", 0, "map[v1.Name]v1.Status"),
            ("string", "map[v1.Name]v1.Status", 1, "v1.Status"),
            ("[]string", "map[string]v1.ExtraValue", 1, "v1.ExtraValue"),
            ("string", "map[string]v1.ExtraValue", 2, "string"),
        ] {
            assert_eq!(own_name(go_type, own, depth), expected, "{go_type} {own}");
        }
    }
}
