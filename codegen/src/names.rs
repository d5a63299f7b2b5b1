//! Rust names and paths of messages and fields.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use crate::model::{Field, FieldType, Message, Model};

/// Words that cannot even be raw identifiers.
const NEVER_RAW: [&str; 4] = ["self", "Self", "super", "crate"];

/// A name that is no keyword.
pub fn escape(name: &str) -> String {
    if NEVER_RAW.contains(&name) {
        format!("{name}_")
    } else if syn::parse_str::<Ident>(name).is_ok() {
        name.to_owned()
    } else {
        format!("r#{name}")
    }
}

/// The Rust identifier of a field.
pub fn field(field: &Field) -> Ident {
    ident(&field.name)
}

/// The Rust identifier of a field by its name in the definition.
pub fn ident(name: &str) -> Ident {
    let escaped = escape(name);
    match escaped.strip_prefix("r#") {
        Some(raw) => Ident::new_raw(raw, Span::call_site()),
        None => Ident::new(&escaped, Span::call_site()),
    }
}

/// Path of a message's Rust type, seen from `depth` modules below the root of the generated code.
pub fn path(message: &Message, depth: usize) -> TokenStream {
    let name = ident(&message.name);
    if let Some((outer, argument)) = message.leaf_argument() {
        let argument = Message {
            name: argument.to_owned(),
            ty: crate::options::Type::default(),
            ..message.clone()
        };
        let outer: TokenStream = outer.parse().unwrap_or_default();
        let argument = self::path(&argument, depth);
        return quote!(#outer<#argument>);
    }
    if message.is_leaf() {
        return message.ty.rust.parse().unwrap_or_default();
    }
    let segments = message.module.path.iter().map(|s| ident(s));
    if message.module.external {
        return quote!(::keelson_machinery::#(#segments::)*#name);
    }
    if depth == 0 {
        return quote!(self::#(#segments::)*#name);
    }
    let up = std::iter::repeat_n(format_ident!("super"), depth);
    quote!(#(#up::)*#(#segments::)*#name)
}

/// The Rust type of a field, seen from `depth` modules below the root.
pub fn field_type(model: &Model, field: &Field, depth: usize) -> TokenStream {
    let plain = plain_type(model, &field.ty, depth);
    if !field.optional {
        return plain;
    }
    let message = match &field.ty {
        FieldType::Message(id) => model.message(*id),
        _ => None,
    };
    match message {
        Some(_) if field.lazy => quote!(::core::option::Option<::keelson_machinery::lazy::Lazy<#plain>>),
        Some(message) if !message.is_leaf() => quote!(::core::option::Option<::std::boxed::Box<#plain>>),
        _ => quote!(::core::option::Option<#plain>),
    }
}

fn plain_type(model: &Model, ty: &FieldType, depth: usize) -> TokenStream {
    match ty {
        FieldType::Bool => quote!(bool),
        FieldType::Int32 => quote!(i32),
        FieldType::Int64 => quote!(i64),
        FieldType::Double => quote!(f64),
        FieldType::String => quote!(::std::string::String),
        FieldType::Bytes => quote!(::keelson_machinery::reflect::Bytes),
        FieldType::Message(id) => model.message(*id).map(|m| path(m, depth)).unwrap_or_default(),
        FieldType::List(element) => {
            let element = plain_type(model, element, depth);
            quote!(::std::vec::Vec<#element>)
        }
        FieldType::Map(value) => {
            let plain = plain_type(model, value, depth);
            // A map has room for eleven values; where these have maps of their own, that would be most of what they
            // take.
            let value = match nests(model, value) {
                true => quote!(::std::boxed::Box<#plain>),
                false => plain,
            };
            quote!(::std::collections::BTreeMap<::std::string::String, #value>)
        }
    }
}

/// Whether messages have maps of their own kind.
fn nests(model: &Model, ty: &FieldType) -> bool {
    let FieldType::Message(id) = ty else { return false };
    let fields = model.message(*id).into_iter().flat_map(|message| &message.fields);
    fields
        .filter_map(|field| match &field.ty {
            FieldType::Map(value) => Some(&**value),
            _ => None,
        })
        .any(|value| matches!(value, FieldType::Message(own) if own == id))
}

/// `HorizontalPodAutoscaler` → `horizontal_pod_autoscaler`; a run of capitals is one word: `HPAScalingRules` →
/// `hpa_scaling_rules`.
pub fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|p| chars.get(p));
        let after = chars.get(i + 1);
        let starts = c.is_uppercase()
            && before.is_some_and(|b| !b.is_uppercase() || after.is_some_and(|a| a.is_lowercase()))
            && before != Some(&'_');
        if starts {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Groups of Kubernetes itself store below the plural alone; others below the group and the plural.
pub fn storage_path(message: &Message) -> String {
    let Some(kind) = &message.kind else {
        return String::new();
    };
    if !kind.storage_path.is_empty() {
        return kind.storage_path.clone();
    }
    let group = &message.group_version.group;
    let built_in = !group.contains('.') || group.ends_with(".k8s.io");
    if built_in {
        kind.plural.clone()
    } else {
        format!("{group}/{}", kind.plural)
    }
}

/// `group/version/Kind` or `version/Kind` → its parts; the legacy group is "".
pub fn split_kind(text: &str) -> Option<(&str, &str, &str)> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        [version, kind] => Some(("", version, kind)),
        [group, version, kind] => Some((group, version, kind)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case_keeps_abbreviations_together() {
        for (name, expected) in [
            ("Widget", "widget"),
            ("HorizontalPodAutoscaler", "horizontal_pod_autoscaler"),
            ("HPAScalingRules", "hpa_scaling_rules"),
            ("JSONSchemaPropsOrBool", "json_schema_props_or_bool"),
            ("V1Thing", "v1_thing"),
        ] {
            assert_eq!(snake(name), expected);
        }
    }

    #[test]
    fn keywords_become_raw() {
        assert_eq!(ident("type").to_string(), "r#type");
        assert_eq!(ident("self").to_string(), "self_");
        assert_eq!(ident("name").to_string(), "name");
    }
}
