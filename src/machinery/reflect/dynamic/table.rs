//! Tables of dynamic messages.

use std::mem::size_of;

use super::DynamicMessage;
use super::slots::Slots;
use crate::reflect::object::Gvk;
use crate::reflect::{
    Desc, FieldDesc, Flags, Id, Make, MessageDesc, MessageRules, NO_MESSAGE_RULES, Name, Ref, Type, Unknown,
};

/// Why fields make no table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DescError {
    #[error("{0}: the field is declared twice")]
    Repeated(Name),
    #[error("{0}: fields of dynamic messages are not inlined")]
    Inlined(Name),
    #[error("there are more than 65 535 fields")]
    TooMany,
}

impl MessageDesc {
    /// A table of a message that is known at run time alone. Since its parts exist before it, it can't contain itself.
    ///
    /// Fields are put in the order of their names, are optional, and know whether something at or below them has a
    /// default or a rule. `apiVersion` and `kind` of a kind are no fields.
    pub fn shared(
        name: impl Into<Name>,
        gvk: Option<Gvk>,
        fields: Vec<FieldDesc>,
        unknown: Unknown,
    ) -> Result<Desc, DescError> {
        MessageDesc::shared_with_rules(name, gvk, fields, unknown, Ref::Static(&NO_MESSAGE_RULES))
    }

    /// As [`MessageDesc::shared`], with rules over the whole message.
    pub fn shared_with_rules(
        name: impl Into<Name>,
        gvk: Option<Gvk>,
        mut fields: Vec<FieldDesc>,
        unknown: Unknown,
        rules: Ref<MessageRules>,
    ) -> Result<Desc, DescError> {
        if gvk.is_some() {
            // These say the type of the object.
            fields.retain(|field| field.json != "apiVersion" && field.json != "kind");
        }
        let count = u16::try_from(fields.len()).map_err(|_| DescError::TooMany)?;
        fields.sort_by(|a, b| a.json.cmp(&b.json));
        for pair in fields.windows(2) {
            if let [a, b] = pair
                && a.json == b.json
            {
                return Err(DescError::Repeated(a.json.clone()));
            }
        }
        if let Some(inlined) = fields.iter().find(|f| f.flags.has(Flags::INLINE)) {
            return Err(DescError::Inlined(inlined.json.clone()));
        }
        for field in &mut fields {
            field.flags = field
                .flags
                .without(AS_ZERO_SHOWS)
                .with(Flags::OPTIONAL)
                .with(below(field))
                .with(escaped(&field.json));
        }
        let mut by_number: Vec<u16> = (0..count).collect();
        let number = |index: &u16| fields.get(usize::from(*index)).map_or(0, |f| f.number);
        by_number.retain(|index| number(index) != 0);
        by_number.sort_by_key(number);
        let is_missed = |field: &FieldDesc| {
            let flags = [Flags::REQUIRED, Flags::IMMUTABLE];
            field.default().is_some() || field.has_rules() || flags.iter().any(|flag| field.flags.has(*flag))
        };
        let missed = (0..count).zip(&fields).filter(|(_, field)| is_missed(field));
        let missed: Vec<u16> = missed.map(|(index, _)| index).collect();
        let defaulted = (0..count)
            .zip(&fields)
            .filter(|(_, field)| field.flags.has(Flags::HAS_DEFAULTS));
        let defaulted: Vec<u16> = defaulted.map(|(index, _)| index).collect();
        let size = size_of::<DynamicMessage>() + Slots::size(fields.len());
        Ok(Ref::Shared(std::sync::Arc::new(MessageDesc {
            name: name.into(),
            by_number: by_number.into(),
            by_name: (0..count).collect::<Vec<u16>>().into(),
            inlined: Ref::Static(&[]),
            missed: missed.into(),
            defaulted: defaulted.into(),
            make: Make::Dynamic,
            gvk: gvk.map(|gvk| Ref::Shared(std::sync::Arc::new(gvk))),
            size,
            unknown,
            rules,
            id: Id::unassigned(),
            fields: fields.into(),
        })))
    }
}

/// What only says how the zero of a plain field is written, of which dynamic messages have none.
const AS_ZERO_SHOWS: Flags = Flags::ALWAYS.with(Flags::OMIT_ZERO).with(Flags::EMPTY_LIST);

fn escaped(name: &str) -> Flags {
    let mut written = Vec::with_capacity(name.len() + 2);
    crate::json_text::write_string(name, &mut written);
    match written.len() == name.len() + 2 {
        true => Flags::NONE,
        false => Flags::ESCAPED,
    }
}

/// What is to be looked for at or below a field.
fn below(field: &FieldDesc) -> Flags {
    let own = |flag: Flags, set: bool| if set { flag } else { Flags::NONE };
    let has_rules = field.has_rules() || field.flags.has(Flags::REQUIRED) || field.flags.has(Flags::IMMUTABLE);
    let flags = own(Flags::HAS_DEFAULTS, field.default().is_some()).with(own(Flags::HAS_RULES, has_rules));
    let flags = flags.with(own(Flags::HAS_VALIDATIONS, !field.rules.validations.is_empty()));
    match &field.ty {
        Type::Message(desc) => {
            let any = |flag: Flags| own(flag, desc.fields.iter().any(|f| f.flags.has(flag)));
            flags
                .with(any(Flags::HAS_DEFAULTS))
                .with(any(Flags::HAS_RULES))
                .with(any(Flags::HAS_VALIDATIONS))
                .with(own(Flags::HAS_RULES, desc.has_rules()))
                .with(own(Flags::HAS_VALIDATIONS, !desc.rules.validations.is_empty()))
        }
        Type::List(element) | Type::Map(element) => flags.with(below(element)),
        _ => flags,
    }
}
