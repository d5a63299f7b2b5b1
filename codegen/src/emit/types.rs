//! Structs.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::Descriptions;
use crate::model::{Field, FieldType, Message, Model};
use crate::names;
use crate::options::{ListType, MapType, Rule, Union};

/// The struct of one message.
pub fn structure(model: &Model, message: &Message, descriptions: &Descriptions) -> TokenStream {
    let depth = message.module.path.len();
    let ident = names::ident(&message.name);
    let name = &message.openapi;
    let mut attributes = quote!(name = #name);
    if message.kind.is_some() {
        let (group, version, kind) = (
            &message.group_version.group,
            &message.group_version.version,
            &message.name,
        );
        attributes.extend(quote!(, group = #group, version = #version, kind = #kind));
        if model.is_object(message) {
            attributes.extend(quote!(, object));
        }
    }
    let texts = descriptions.get(&message.openapi);
    let doc = docs(&message.comment, texts.map(|t| t.0.as_str()));
    let fields = message.fields.iter().map(|field| {
        let doc = docs(
            &field.comment,
            texts.and_then(|t| t.1.get(&field.json)).map(String::as_str),
        );
        let (ident, ty) = (names::field(field), names::field_type(model, field, depth));
        let attributes = field_attributes(model, field);
        let validations = validations(&field.options.rules);
        quote!(#doc #[field(#attributes)] #validations pub #ident: #ty)
    });
    let unions: TokenStream = message.enforced_unions().map(union).collect();
    let kind_rules = message.kind.iter().flat_map(|k| &k.rules);
    let validations = validations(message.ty.rules.iter().chain(kind_rules));
    quote! {
        #doc
        #[derive(Clone, Default, ::keelson_machinery::Message)]
        #[message(#attributes)]
        #unions
        #validations
        pub struct #ident { #(#fields,)* }
    }
}

fn union(union: &Union) -> TokenStream {
    let of_values = union.fields.iter().map(|(field, value)| format!("{field}={value}"));
    let members = of_values.chain(union.members.iter().cloned());
    match union.discriminator.as_str() {
        "" => quote!(#[union(members(#(#members),*))]),
        discriminator => quote!(#[union(discriminator = #discriminator, members(#(#members),*))]),
    }
}

fn validations<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> TokenStream {
    let one = |rule: &Rule| {
        let texts = [
            (quote!(rule), &rule.rule),
            (quote!(message), &rule.message),
            (quote!(message_expression), &rule.message_expression),
            (quote!(reason), &rule.reason),
            (quote!(field_path), &rule.field_path),
        ];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let texts = texts.map(|(name, text)| quote!(#name = #text));
        let optional = rule.optional_old_self.then(|| quote!(, optional_old_self));
        quote!(#[validation(#(#texts),* #optional)])
    };
    rules.into_iter().map(one).collect()
}

/// The comment of the definition, else the text given to the builder.
fn docs(comment: &str, given: Option<&str>) -> TokenStream {
    let text = if comment.is_empty() {
        given.unwrap_or_default()
    } else {
        comment
    };
    harmless(text).map(|line| quote!(#[doc = #line])).collect()
}

/// Lines that rustdoc shows as text: an indented line or a fence would become Rust code to be tested.
fn harmless(text: &str) -> impl Iterator<Item = String> {
    let mut open = false;
    text.lines().map(move |line| {
        let line = line.trim_start();
        let fence = line.starts_with("```") || line.starts_with("~~~");
        open ^= fence;
        if fence && open {
            " ```text".to_owned()
        } else {
            format!(" {line}")
        }
    })
}

fn field_attributes(model: &Model, field: &Field) -> TokenStream {
    let (json, number) = (&field.json, Literal::u32_unsuffixed(field.number));
    let mut all = quote!(json = #json, number = #number);
    flags(model, field, &mut all);
    let o = &field.options;
    if !field.default().is_empty() {
        let text = field.default();
        all.extend(quote!(, default = #text));
    }
    let list = match o.list_type {
        ListType::Unset => None,
        ListType::Atomic => Some("atomic"),
        ListType::Set => Some("set"),
        ListType::Map => Some("map"),
    };
    if let Some(list) = list {
        all.extend(quote!(, list = #list));
    }
    for (name, values) in [(quote!(keys), &o.map_keys), (quote!(patch), &o.patch_strategy)] {
        if !values.is_empty() {
            all.extend(quote!(, #name(#(#values),*)));
        }
    }
    if !o.merge_key.is_empty() {
        let key = &o.merge_key;
        all.extend(quote!(, merge_key = #key));
    }
    if !o.go_type.is_empty() {
        let name = &o.go_type;
        all.extend(quote!(, go_type = #name));
    }
    rules(field, &mut all);
    all
}

fn flags(model: &Model, field: &Field, all: &mut TokenStream) {
    let o = &field.options;
    let below = field.ty.message().and_then(|id| model.message(id));
    let flags = [
        (quote!(inline), o.inline),
        (quote!(always), o.always),
        (quote!(required), o.required),
        (quote!(immutable), o.immutable),
        (quote!(omit_zero), o.omit_zero),
        (quote!(atomic), is_atomic(model, field)),
        (quote!(nullable), o.nullable),
        (quote!(typed), o.typed),
        (quote!(empty_list), o.empty_list),
        (quote!(unchecked), o.unchecked),
        (
            quote!(has_defaults),
            !field.default().is_empty() || below.is_some_and(|m| m.has_defaults),
        ),
        (
            quote!(has_rules),
            field.has_own_rules() || below.is_some_and(|m| m.has_rules),
        ),
        (
            quote!(has_validations),
            !o.rules.is_empty() || below.is_some_and(|m| m.has_validations),
        ),
    ];
    for (name, _) in flags.into_iter().filter(|(_, set)| *set) {
        all.extend(quote!(, #name));
    }
}

/// Of a message or list of messages: whether the field or the message says so. Of a map: whether the field does.
fn is_atomic(model: &Model, field: &Field) -> bool {
    let of_type = || {
        field
            .ty
            .message()
            .and_then(|id| model.message(id))
            .is_some_and(|m| m.ty.map_type == MapType::Atomic)
    };
    match (field.options.map_type, &field.ty) {
        (MapType::Atomic, _) => true,
        (MapType::Unset, FieldType::Message(_) | FieldType::List(_)) => of_type(),
        _ => false,
    }
}

fn rules(field: &Field, all: &mut TokenStream) {
    let o = &field.options;
    for (name, values) in [(quote!(enum), &o.enum_values), (quote!(item_enum), &o.item_enum)] {
        if !values.is_empty() {
            all.extend(quote!(, #name(#(#values),*)));
        }
    }
    let numbers = [
        (quote!(minimum), o.minimum),
        (quote!(maximum), o.maximum),
        (quote!(multiple_of), o.multiple_of),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            let sign = if value.is_sign_negative() {
                quote!(-)
            } else {
                TokenStream::new()
            };
            let value = Literal::f64_unsuffixed(value.abs());
            all.extend(quote!(, #name = #sign #value));
        }
    }
    for (name, set) in [
        (quote!(exclusive_minimum), o.exclusive_minimum),
        (quote!(exclusive_maximum), o.exclusive_maximum),
    ] {
        if set {
            all.extend(quote!(, #name));
        }
    }
    let counts = [
        (quote!(min_length), o.min_length),
        (quote!(max_length), o.max_length),
        (quote!(min_items), o.min_items),
        (quote!(max_items), o.max_items),
        (quote!(min_properties), o.min_properties),
        (quote!(max_properties), o.max_properties),
    ];
    for (name, value) in counts {
        if let Some(value) = value {
            let value = Literal::u32_unsuffixed(value);
            all.extend(quote!(, #name = #value));
        }
    }
    let texts = [
        (quote!(pattern), &o.pattern),
        (quote!(format), &o.format),
        (quote!(key_format), &o.key_format),
        (quote!(item_format), &o.item_format),
        (quote!(required_when), &o.required_when),
    ];
    for (name, text) in texts {
        if !text.is_empty() {
            all.extend(quote!(, #name = #text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_never_become_code_to_be_tested() {
        let lines: Vec<String> = harmless("Text:\n\n    a: [b]\n```yaml\nx: 1\n```\n- end").collect();
        assert_eq!(lines, [" Text:", " ", " a: [b]", " ```text", " x: 1", " ```", " - end"]);
    }
}
