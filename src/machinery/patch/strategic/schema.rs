//! The schema of a strategic merge patch: what the definitions say of the fields that it changes.

use crate::reflect::{LeafKind, MessageDesc, Patch, Type};

/// What an object is made of.
#[derive(Clone, Copy)]
pub(super) enum Schema<'d> {
    /// The definitions don't say.
    Unknown,
    /// Any JSON.
    Raw,
    Message(&'d MessageDesc),
    /// Any keys, with values of this type.
    Map(&'d Type),
}

/// How one field is patched, and the schema of its value or elements.
#[derive(Clone, Copy)]
pub(super) struct FieldRule<'d> {
    pub(super) schema: Schema<'d>,
    pub(super) patch: Patch,
    pub(super) merge_key: &'d str,
    /// It is a list.
    pub(super) list: bool,
}

impl FieldRule<'_> {
    const UNKNOWN: FieldRule<'static> = FieldRule {
        schema: Schema::Unknown,
        patch: Patch::NONE,
        merge_key: "",
        list: false,
    };
}

impl<'d> Schema<'d> {
    /// `None`: there is no such field.
    pub(super) fn find(self, name: &str) -> Option<FieldRule<'d>> {
        let field = match self {
            Schema::Unknown | Schema::Raw => return None,
            Schema::Message(desc) => desc.declared(name)?,
            Schema::Map(element) => {
                return Some(FieldRule {
                    schema: within(element),
                    ..FieldRule::UNKNOWN
                });
            }
        };
        Some(FieldRule {
            schema: within(&field.ty),
            patch: field.patch,
            merge_key: field.merge_key(),
            list: matches!(field.ty, Type::List(_)),
        })
    }

    pub(super) fn field(self, name: &str) -> FieldRule<'d> {
        self.find(name).unwrap_or(FieldRule::UNKNOWN)
    }

    pub(super) fn is_raw(self) -> bool {
        matches!(self, Schema::Raw)
    }

    /// The name of the Go struct.
    pub(super) fn struct_name(self) -> &'d str {
        match self {
            Schema::Message(desc) => desc.short_name(),
            _ => "",
        }
    }
}

/// The schema of a field's value, or of the elements of a list.
fn within(ty: &Type) -> Schema<'_> {
    match ty {
        Type::Message(desc) => Schema::Message(desc),
        Type::Leaf(LeafKind::Raw) | Type::Any | Type::Untyped => Schema::Raw,
        Type::List(element) => within(&element.ty),
        Type::Map(element) => Schema::Map(&element.ty),
        _ => Schema::Unknown,
    }
}
