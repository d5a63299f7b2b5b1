//! What few fields have: a default, keys of a list, declarative validation.

use super::{Name, Names};

/// Properties of a field that are rare. `None` and empty: it has them not.
#[derive(Clone, Debug)]
pub struct Details {
    /// JSON text of the value an absent field gets.
    pub default: Option<Name>,
    /// JSON names of the keys of a list of type [`ListType::Map`](super::ListType::Map).
    pub map_keys: Names,
    /// The field by which a strategic merge patch knows items.
    pub merge_key: Name,
}

impl Details {
    pub const NONE: Details = Details {
        default: None,
        map_keys: Names::NONE,
        merge_key: Name::new_static(""),
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
    };
}

/// The rules of fields that have none.
pub static NO_RULES: Rules = Rules::NONE;

impl Default for Rules {
    fn default() -> Rules {
        Rules::NONE
    }
}
