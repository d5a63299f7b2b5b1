//! The model: messages, fields and kinds as the definitions say them, with all names resolved.

use std::collections::HashMap;

use crate::options;
use crate::problem::Place;

/// Index of a message in [`Model::messages`].
pub type MessageId = usize;

/// Everything that one build knows: its own messages and those of the library.
#[derive(Debug, Default)]
pub struct Model {
    pub messages: Vec<Message>,
    pub by_name: HashMap<String, MessageId>,
}

/// Where a message's Rust type is declared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Module {
    /// `["core", "v1"]`.
    pub path: Vec<String>,
    /// Declared in the library crate and not in this build.
    pub external: bool,
}

#[derive(Clone, Debug)]
pub struct Message {
    /// Rust name and kind: `Pod`; of a message in a message both names in a row.
    pub name: String,
    /// Full name in protobuf.
    pub full_name: String,
    /// The package.
    pub package: String,
    /// Name of the OpenAPI definition.
    pub openapi: String,
    pub module: Module,
    pub group_version: options::GroupVersion,
    pub kind: Option<options::Kind>,
    pub ty: options::Type,
    pub fields: Vec<Field>,
    pub comment: String,
    pub place: Place,
    /// Some field in or below it has a default.
    pub has_defaults: bool,
    /// Some field in or below it has rules that are checked in every type; see [`Field::has_own_rules`].
    pub has_rules: bool,
    /// Some value in it, or it itself, has CEL rules.
    pub has_validations: bool,
    /// A list kind made by the generator.
    pub list_of: Option<MessageId>,
}

#[derive(Clone, Debug)]
pub struct Field {
    /// Name in the definition and (escaped, if it is a keyword) in Rust.
    pub name: String,
    pub json: String,
    pub number: u32,
    pub ty: FieldType,
    pub optional: bool,
    /// Read when somebody looks at it.
    pub lazy: bool,
    pub options: options::Field,
    pub comment: String,
    pub place: Place,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FieldType {
    Bool,
    Int32,
    Int64,
    Double,
    String,
    Bytes,
    Message(MessageId),
    List(Box<FieldType>),
    Map(Box<FieldType>),
}

impl FieldType {
    /// The message that stands in the field, its elements or its values.
    pub fn message(&self) -> Option<MessageId> {
        match self {
            FieldType::Message(id) => Some(*id),
            FieldType::List(element) | FieldType::Map(element) => element.message(),
            _ => None,
        }
    }

    pub fn is_scalar(&self) -> bool {
        !matches!(self, FieldType::Message(_) | FieldType::List(_) | FieldType::Map(_))
    }
}

impl Message {
    /// Whether it has rules beside those of its fields that are checked. Kubernetes' own types publish unions that code
    /// decides.
    pub fn has_own_rules(&self) -> bool {
        self.has_own_validations() || self.enforced_unions().next().is_some()
    }

    /// Whether there are CEL rules over the message.
    pub fn has_own_validations(&self) -> bool {
        !self.ty.rules.is_empty() || self.kind.as_ref().is_some_and(|kind| !kind.rules.is_empty())
    }

    /// The unions that are checked.
    pub fn enforced_unions(&self) -> impl Iterator<Item = &options::Union> {
        let own = !self.openapi.starts_with("io.k8s.");
        self.ty.unions.iter().filter(move |_| own)
    }
}

impl Field {
    /// The JSON text of the value that an absent field gets; empty if there is none.
    pub fn default(&self) -> &str {
        if self.options.default.is_empty() {
            &self.options.server_default
        } else {
            &self.options.default
        }
    }

    /// Whether this field itself (not what stands below it) is validated declaratively.
    pub fn has_own_rules(&self) -> bool {
        let o = &self.options;
        // What is required of a field that has no absence is looked at in types that are not those of Kubernetes, which
        // are walked whole.
        !o.unchecked && (self.says_values() || o.immutable || (o.required && self.optional))
    }

    /// Whether the definition says what values this field takes, be they checked or not.
    pub fn says_rules(&self) -> bool {
        let o = &self.options;
        o.required || o.immutable || self.says_values()
    }

    fn says_values(&self) -> bool {
        let o = &self.options;
        o.minimum.or(o.maximum).or(o.multiple_of).is_some()
            || o.min_length.or(o.max_length).or(o.min_items).or(o.max_items).is_some()
            || o.min_properties.or(o.max_properties).is_some()
            || !(o.enum_values.is_empty() && o.item_enum.is_empty() && o.pattern.is_empty() && o.format.is_empty())
            || !(o.key_format.is_empty()
                && o.item_format.is_empty()
                && o.required_when.is_empty()
                && o.rules.is_empty())
    }
}

impl Message {
    /// A hand-written Rust type.
    pub fn is_leaf(&self) -> bool {
        !self.ty.rust.is_empty()
    }

    /// Of a hand-written type `::path::Union<Widget>`: the path, and the name of the message in this package that
    /// stands in it.
    pub fn leaf_argument(&self) -> Option<(&str, &str)> {
        let (outer, argument) = self.ty.rust.strip_suffix('>')?.split_once('<')?;
        Some((outer, argument))
    }

    /// The kind's options if it has a resource of its own.
    pub fn resource(&self) -> Option<&options::Kind> {
        self.kind.as_ref().filter(|k| !k.plural.is_empty())
    }

    pub fn field(&self, json: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.json == json && !f.options.inline)
    }
}

/// Name of the message of object metadata.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Name of the message of list metadata.
pub const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

impl Model {
    pub fn message(&self, id: MessageId) -> Option<&Message> {
        self.messages.get(id)
    }

    pub fn named(&self, full_name: &str) -> Option<&Message> {
        self.by_name.get(full_name).and_then(|id| self.message(*id))
    }

    /// The messages that this build declares as structs.
    pub fn own(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(|m| !m.module.external && !m.is_leaf())
    }

    /// Whether the message is a kind with object metadata.
    pub fn is_object(&self, message: &Message) -> bool {
        message.kind.is_some() && self.metadata_is(message, OBJECT_META)
    }

    pub fn metadata_is(&self, message: &Message, full_name: &str) -> bool {
        message.fields.iter().any(|f| {
            f.name == "metadata"
                && !f.optional
                && matches!(f.ty, FieldType::Message(id) if self.message(id).is_some_and(|m| m.full_name == full_name))
        })
    }

    /// A field by its JSON name, also of messages that stand inline.
    pub fn find_field<'a>(&'a self, message: &'a Message, json: &str) -> Option<&'a Field> {
        message.field(json).or_else(|| {
            let inlined = message.fields.iter().filter(|f| f.options.inline);
            inlined
                .filter_map(|f| self.message(f.ty.message()?))
                .find_map(|m| self.find_field(m, json))
        })
    }
}
