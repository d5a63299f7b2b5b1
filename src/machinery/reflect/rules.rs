//! Rare properties of fields and messages: defaults, keys of lists, declarative validation.

use std::any::Any;
use std::sync::OnceLock;

use super::{Name, Names, Ref};

/// Properties of a field that are rare. `None` and empty: it has them not.
#[derive(Clone, Debug)]
pub struct Details {
    /// JSON text of the value an absent field gets.
    pub default: Option<Name>,
    /// JSON names of the keys of a list of type [`ListType::Map`](super::ListType::Map).
    pub map_keys: Names,
    /// The field by which a strategic merge patch knows items.
    pub merge_key: Name,
    /// The name that the type of the value, or of its elements, has in Go where it is more than a text or number: what
    /// clients send that is of another type is refused with it.
    pub go_type: Name,
}

impl Details {
    pub const NONE: Details = Details {
        default: None,
        map_keys: Names::NONE,
        merge_key: Name::new_static(""),
        go_type: Name::new_static(""),
    };
}

/// The details of fields that have none.
pub static NO_DETAILS: Details = Details::NONE;

impl Default for Details {
    fn default() -> Details {
        Details::NONE
    }
}

/// Declarative validation of one field. `None` and empty: no rule.
#[derive(Clone, Debug)]
pub struct Rules {
    pub enum_values: Names,
    pub item_enum: Names,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u32>,
    pub max_length: Option<u32>,
    pub min_items: Option<u32>,
    pub max_items: Option<u32>,
    pub min_properties: Option<u32>,
    pub max_properties: Option<u32>,
    pub pattern: Name,
    pub format: Name,
    /// Of a map: the format of its keys.
    pub key_format: Name,
    /// Of a list or map: the format of its elements, which are texts or numbers.
    pub item_format: Name,
    /// `member=value`: the field must be present where that member of the same message has that value.
    pub required_when: Name,
    /// `x-kubernetes-validations` of the value.
    pub validations: Ref<[ValidationRule]>,
}

impl Rules {
    pub const NONE: Rules = Rules {
        enum_values: Names::NONE,
        item_enum: Names::NONE,
        minimum: None,
        maximum: None,
        exclusive_minimum: false,
        exclusive_maximum: false,
        multiple_of: None,
        min_length: None,
        max_length: None,
        min_items: None,
        max_items: None,
        min_properties: None,
        max_properties: None,
        pattern: Name::new_static(""),
        format: Name::new_static(""),
        key_format: Name::new_static(""),
        item_format: Name::new_static(""),
        required_when: Name::new_static(""),
        validations: Ref::Static(&[]),
    };
}

/// The rules of fields that have none.
pub static NO_RULES: Rules = Rules::NONE;

impl Default for Rules {
    fn default() -> Rules {
        Rules::NONE
    }
}

/// Declarative validation of a message beyond that of its fields.
#[derive(Clone, Debug)]
pub struct MessageRules {
    pub unions: Ref<[Union]>,
    /// `x-kubernetes-validations` of the message.
    pub validations: Ref<[ValidationRule]>,
}

/// Fields of a message of which one stands alone (`x-kubernetes-unions`).
#[derive(Clone, Debug)]
pub struct Union {
    /// JSON name of the field that says which member there is; "" where none does: then there is one member exactly.
    pub discriminator: Name,
    /// In the order in which messages name them.
    pub members: Ref<[Member]>,
}

/// One field of a union.
#[derive(Clone, Debug)]
pub struct Member {
    /// JSON name.
    pub field: Name,
    /// What the discriminator is when it is this one; "" where there is none.
    pub value: Name,
}

impl MessageRules {
    pub const NONE: MessageRules = MessageRules {
        unions: Ref::Static(&[]),
        validations: Ref::Static(&[]),
    };
}

/// The rules of messages that have none.
pub static NO_MESSAGE_RULES: MessageRules = MessageRules::NONE;

/// The rules of objects whose values a schema is asked about, which knows more than fields can say.
pub static BY_SCHEMA: MessageRules = MessageRules::NONE;

/// One of `x-kubernetes-validations`: a CEL expression that is true of a good value.
#[derive(Clone, Debug)]
pub struct ValidationRule {
    /// Over `self` and, where it looks at changes, `oldSelf`.
    pub rule: Name,
    /// What is said when it is false; "": that the rule failed.
    pub message: Name,
    /// CEL that makes this text, and comes first.
    pub message_expression: Name,
    /// Reason of the error: FieldValueInvalid (also ""), FieldValueForbidden, FieldValueRequired, FieldValueDuplicate.
    pub reason: Name,
    /// Where the error is, from the value on: `.spec.size`.
    pub field_path: Name,
    /// `oldSelf` is an optional value, and the rule is looked at where there is no old value too.
    pub optional_old_self: bool,
    pub compiled: Compiled,
}

/// What validation makes of a rule when it first needs it.
#[derive(Debug)]
pub struct Compiled(OnceLock<Box<dyn Any + Send + Sync>>);

impl Compiled {
    pub const fn not_yet() -> Compiled {
        Compiled(OnceLock::new())
    }

    /// What was made, made now if it is asked for the first time; `None` if something else was made before.
    pub(crate) fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl Default for Compiled {
    fn default() -> Compiled {
        Compiled::not_yet()
    }
}

impl Clone for Compiled {
    /// A copy may stand where other types are, so it is compiled anew.
    fn clone(&self) -> Compiled {
        Compiled::not_yet()
    }
}
