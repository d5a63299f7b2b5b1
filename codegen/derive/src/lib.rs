//! `#[derive(Message)]`: the field table and the accessors of an API message.
//!
//! The derive sees one struct and no other type. Whatever depends on the types of fields comes from the trait
//! `keelson_machinery::reflect::Field` at compile time of the struct; whatever depends on the whole graph of messages
//! (`has_defaults`, `has_rules`, `has_validations`) is said by the code generator in attributes.

mod attributes;
mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Writes `Reflect`, `Field` and the inherent `message_desc()` for a plain struct; with `kind` also `Kind`, with
/// `object` also `Object`.
///
/// On the struct, `#[message(…)]`:
///
/// | attribute | meaning |
/// | --- | --- |
/// | `name = "io.k8s.api.core.v1.Pod"` | name of the OpenAPI definition; required |
/// | `group = "apps"`, `version = "v1"`, `kind = "Pod"` | it is a kind; `group` is "" when left out |
/// | `object` | it has a field `metadata` of type `ObjectMeta` |
///
/// On each field, `#[field(…)]`: `json = "clusterIP"` (required), `number = 3` (0 or left out: not in protobuf), the
/// flags `inline`, `always`, `required`, `immutable`, `omit_zero`, `atomic`, `nullable`, `typed`, `empty_list`,
/// `unchecked`, `has_defaults`, `has_rules`, `has_validations`,
/// and `default = "JSON text"`, `list = "atomic" | "set" | "map"`, `keys("a", "b")`, `patch("merge", "replace",
/// "retainKeys")`, `merge_key = "name"`, `enum("A", "B")`, `item_enum("A")`, `minimum = 1.0`, `maximum = 2.0`,
/// `exclusive_minimum`, `exclusive_maximum`, `multiple_of = 2.0`, `min_length`, `max_length`, `min_items`,
/// `max_items`, `min_properties`, `max_properties` (`= 3`), `pattern = "^a$"`, `format = "uri"`, `key_format`,
/// `item_format`, `required_when = "type=Static"`.
///
/// On the struct, any number of `#[union(discriminator = "type", members("static=Static", "dynamic=Dynamic"))]`, and on
/// the struct or a field any number of `#[validation(rule = "self.a <= self.b", message = "…", message_expression =
/// "…", reason = "FieldValueInvalid", field_path = ".a", optional_old_self)]`.
#[proc_macro_derive(Message, attributes(message, field, union, validation))]
pub fn derive_message(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::message(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
