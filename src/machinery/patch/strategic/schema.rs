//! What the definitions say of the fields that a patch changes.

use crate::reflect::{FieldDesc, Flags, LeafKind, MessageDesc, Patch, Type};

/// What an object is made of.
#[derive(Clone, Copy)]
pub(super) enum Schema {
    /// The definitions don't say.
    Unknown,
    /// Any JSON.
    Raw,
    Message(&'static MessageDesc),
    /// Any keys, with values of this type.
    Map(&'static Type),
}

/// How one field is patched, and the schema of its value or elements.
#[derive(Clone, Copy)]
pub(super) struct FieldRule {
    pub(super) schema: Schema,
    pub(super) patch: Patch,
    pub(super) merge_key: &'static str,
    /// It is a list.
    pub(super) list: bool,
}

impl FieldRule {
    const UNKNOWN: FieldRule = FieldRule {
        schema: Schema::Unknown,
        patch: Patch::NONE,
        merge_key: "",
        list: false,
    };
}

impl Schema {
    /// `None`: there is no such field.
    pub(super) fn find(self, name: &str) -> Option<FieldRule> {
        let field = match self {
            Schema::Unknown | Schema::Raw => return None,
            Schema::Message(desc) => find(desc, name)?,
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
            merge_key: field.merge_key,
            list: matches!(field.ty, Type::List(_)),
        })
    }

    pub(super) fn field(self, name: &str) -> FieldRule {
        self.find(name).unwrap_or(FieldRule::UNKNOWN)
    }

    pub(super) fn is_raw(self) -> bool {
        matches!(self, Schema::Raw)
    }

    /// The name of the Go struct.
    pub(super) fn struct_name(self) -> &'static str {
        match self {
            Schema::Message(desc) => desc.name.rsplit('.').next().unwrap_or_default(),
            _ => "",
        }
    }
}

/// Looks into inlined messages too.
fn find(desc: &'static MessageDesc, name: &str) -> Option<&'static FieldDesc> {
    desc.field(name).map(|(_, field)| field).or_else(|| {
        let inlined = desc.fields.iter().filter(|f| f.flags.has(Flags::INLINE));
        inlined
            .filter_map(|f| message_in(&f.ty))
            .find_map(|inner| find(inner, name))
    })
}

fn message_in(ty: &'static Type) -> Option<&'static MessageDesc> {
    match ty {
        Type::Message(desc) => Some(desc()),
        _ => None,
    }
}

/// The schema of a field's value, or of the elements of a list.
fn within(ty: &'static Type) -> Schema {
    match ty {
        Type::Message(desc) => Schema::Message(desc()),
        Type::Leaf(LeafKind::Raw) => Schema::Raw,
        Type::List(element) => within(element),
        Type::Map(element) => Schema::Map(element),
        _ => Schema::Unknown,
    }
}
