//! What the definitions say of the fields that a patch changes.

use crate::reflect::{FieldDesc, Flags, MessageDesc, Patch, Type};

/// The fields of an object; none of objects that the definitions don't describe.
#[derive(Clone, Copy)]
pub(super) struct Schema(pub(super) Option<&'static MessageDesc>);

/// How one field is patched, and the schema of its value or elements.
#[derive(Clone, Copy)]
pub(super) struct FieldRule {
    pub(super) schema: Schema,
    pub(super) patch: Patch,
    pub(super) merge_key: &'static str,
    /// It is a list.
    pub(super) list: bool,
}

impl Schema {
    /// `None`: there is no such field.
    pub(super) fn find(self, name: &str) -> Option<FieldRule> {
        let field = find(self.0?, name)?;
        Some(FieldRule {
            schema: Schema(message_in(&field.ty)),
            patch: field.patch,
            merge_key: field.merge_key,
            list: matches!(field.ty, Type::List(_)),
        })
    }

    pub(super) fn field(self, name: &str) -> FieldRule {
        self.find(name).unwrap_or(FieldRule {
            schema: Schema(None),
            patch: Patch::NONE,
            merge_key: "",
            list: false,
        })
    }

    /// The name of the Go struct.
    pub(super) fn struct_name(self) -> &'static str {
        self.0.and_then(|desc| desc.name.rsplit('.').next()).unwrap_or_default()
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

fn message_in(ty: &Type) -> Option<&'static MessageDesc> {
    match ty {
        Type::Message(desc) => Some(desc()),
        Type::List(element) | Type::Map(element) => message_in(element),
        _ => None,
    }
}
