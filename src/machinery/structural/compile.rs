//! Schemas to tables: the type of a custom resource, as data that all codecs and server-side apply go by.
//!
//! Reading by the table prunes as the schema says: what it does not declare is dropped, unless it is preserved; a null
//! where null is no value is none. Values of wrong types stay until they are validated.

use std::sync::{Arc, LazyLock};

use super::schema::{AdditionalProperties, JsonSchema, Keywords, SchemaType};
use crate::meta::v1::ObjectMeta;
use crate::reflect::dynamic::DescError;
use crate::reflect::object::Gvk;
use crate::reflect::{
    BY_SCHEMA, Desc, Details, FieldDesc, Flags, ListType, MessageDesc, Name, Names, Ref, Type, Unknown,
};

/// What a kind is made of.
pub struct Compile<'a> {
    pub gvk: Gvk,
    /// `None`: nothing is known of its objects but their metadata.
    pub schema: Option<&'a JsonSchema>,
    /// `spec.preserveUnknownFields` of the definition: nothing is dropped.
    pub preserve_unknown_fields: bool,
}

/// The table of a kind's objects.
///
/// # Errors
/// More than 65 535 properties in one schema.
pub fn compile(kind: &Compile<'_>) -> Result<Desc, DescError> {
    static NONE: LazyLock<JsonSchema> = LazyLock::new(JsonSchema::default);
    let schema = kind.schema.unwrap_or(&NONE);
    let compiler = Compiler {
        preserve_all: kind.preserve_unknown_fields,
        empty: empty()?,
    };
    let preserve = compiler.preserves(schema, false);
    let mut fields = compiler.properties(schema, &["apiVersion", "kind", "metadata"])?;
    fields.push(metadata());
    let unknown = unknown(preserve || schema.additional_properties.is_some());
    let name = definition_name(&kind.gvk);
    MessageDesc::shared_with_rules(name, Some(kind.gvk.clone()), fields, unknown, Ref::Static(&BY_SCHEMA))
}

/// The name of a kind's OpenAPI definition: `com.example.stable.v1.CronTab`.
fn definition_name(gvk: &Gvk) -> String {
    let mut parts: Vec<&str> = gvk.group.rsplit('.').collect();
    parts.extend([gvk.version.as_str(), gvk.kind.as_str()]);
    parts.join(".")
}

/// The name of the field of a [`holder`].
pub(super) const DEFAULT: &str = "default";

/// The table of a message whose one field is a value of the schema, of which nothing is dropped.
pub(super) fn holder(schema: &JsonSchema, is_resource: bool) -> Result<Desc, DescError> {
    let compiler = Compiler {
        preserve_all: true,
        empty: empty()?,
    };
    let mut field = compiler.field(Name::new_static(DEFAULT), schema, true)?;
    if is_resource {
        field.ty = compiler.embedded(schema, true)?;
    }
    // Whoever keeps unknown fields keeps them in values of other types too.
    MessageDesc::shared("", None, vec![field], Unknown::Kept)
}

fn unknown(kept: bool) -> Unknown {
    match kept {
        true => Unknown::Kept,
        false => Unknown::Dropped,
    }
}

fn metadata() -> FieldDesc {
    let ty = Type::Message(Ref::Static(ObjectMeta::message_desc()));
    FieldDesc::shared("metadata", ty, Flags::NONE)
}

/// An object of which nothing is kept.
fn empty() -> Result<Desc, DescError> {
    MessageDesc::shared("", None, Vec::new(), Unknown::Dropped)
}

struct Compiler {
    preserve_all: bool,
    empty: Desc,
}

impl Compiler {
    /// Whether what the schema does not declare is kept. Items of a list that is preserved are preserved too.
    fn preserves(&self, schema: &JsonSchema, inherited: bool) -> bool {
        self.preserve_all || inherited || schema.has(Keywords::PRESERVE)
    }

    fn properties(&self, schema: &JsonSchema, without: &[&str]) -> Result<Vec<FieldDesc>, DescError> {
        let declared = schema.properties.iter();
        let declared = declared.filter(|property| !without.contains(&property.name.as_str()));
        declared
            .map(|property| self.field(property.name.clone(), &property.schema, false))
            .collect()
    }

    fn field(&self, name: Name, schema: &JsonSchema, preserved: bool) -> Result<FieldDesc, DescError> {
        let mut flags = Flags::NONE;
        if schema.has(Keywords::NULLABLE) {
            flags = flags.with(Flags::NULLABLE);
        } else if schema.default.is_none() && !self.preserve_all {
            flags = flags.with(Flags::DROPS_NULL);
        }
        if schema.map_type() == Some("atomic") {
            flags = flags.with(Flags::ATOMIC);
        }
        let list = match schema.list_type() {
            Some("atomic") => ListType::Atomic,
            Some("set") => ListType::Set,
            Some("map") => ListType::Map,
            _ => ListType::Unset,
        };
        let field = FieldDesc::shared(name, self.ty(schema, preserved)?, flags).with_list(list);
        if schema.default.is_none() && schema.map_keys().is_empty() {
            return Ok(field);
        }
        let details = Details {
            default: schema.default.clone(),
            map_keys: Names::from_iter(schema.map_keys().iter().cloned()),
            ..Details::NONE
        };
        Ok(field.with_details(Ref::Shared(Arc::new(details))))
    }

    fn ty(&self, schema: &JsonSchema, preserved: bool) -> Result<Type, DescError> {
        let preserve = self.preserves(schema, preserved);
        if schema.has(Keywords::INT_OR_STRING) {
            return Ok(if preserve { Type::Any } else { Type::Untyped });
        }
        if schema.has(Keywords::EMBEDDED) {
            return self.embedded(schema, preserve);
        }
        match schema.ty {
            SchemaType::String => Ok(Type::String),
            SchemaType::Integer => Ok(Type::Int64),
            SchemaType::Number => Ok(Type::Double),
            SchemaType::Boolean => Ok(Type::Bool),
            SchemaType::Array => self.array(schema, preserve),
            SchemaType::Object => self.object(schema, preserve),
            SchemaType::Unset | SchemaType::Other if !schema.properties.is_empty() => self.object(schema, preserve),
            SchemaType::Unset | SchemaType::Other => Ok(Type::Any),
        }
    }

    fn array(&self, schema: &JsonSchema, preserve: bool) -> Result<Type, DescError> {
        let mut element = match schema.item() {
            Some(item) => self.field(Name::default(), item, preserve)?,
            None if preserve => return Ok(Type::List(Ref::Static(FieldDesc::ANY))),
            None => self.pruned(),
        };
        // An item stays in its place, whatever it is.
        element.flags = element.flags.without(Flags::DROPS_NULL);
        Ok(Type::List(Ref::Shared(Arc::new(element))))
    }

    fn object(&self, schema: &JsonSchema, preserve: bool) -> Result<Type, DescError> {
        if !schema.properties.is_empty() {
            let unknown = unknown(preserve || schema.additional_properties.is_some());
            let fields = self.properties(schema, &[])?;
            return Ok(Type::Message(MessageDesc::shared("", None, fields, unknown)?));
        }
        let element = match schema.additional_properties.as_deref() {
            Some(AdditionalProperties::Schema(values)) => self.field(Name::default(), values, false)?,
            Some(AdditionalProperties::Allowed(_)) => self.pruned(),
            None if preserve => return Ok(Type::Any),
            None => return Ok(Type::Message(self.empty.clone())),
        };
        Ok(Type::Map(Ref::Shared(Arc::new(element))))
    }

    /// An object of any kind within another: its type is said, its metadata is that of every object.
    fn embedded(&self, schema: &JsonSchema, preserve: bool) -> Result<Type, DescError> {
        let names = ["apiVersion", "kind"];
        let mut fields = self.properties(schema, &["apiVersion", "kind", "metadata"])?;
        fields.extend(names.map(|name| FieldDesc::shared(name, Type::String, Flags::NONE)));
        fields.push(metadata());
        Ok(Type::Message(MessageDesc::shared("", None, fields, unknown(preserve))?))
    }

    /// Any value; of objects nothing is kept.
    fn pruned(&self) -> FieldDesc {
        FieldDesc::shared("", Type::Message(self.empty.clone()), Flags::NULLABLE)
    }
}
