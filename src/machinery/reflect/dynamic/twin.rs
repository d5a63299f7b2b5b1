//! Dynamic twins of structs: tables that are made at run time, field by field, from those that the compiler made.

use std::collections::BTreeMap;
use std::sync::Arc;

use keelson_machinery::dynamic::DescError;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::reflect::{Desc, FieldDesc, Flags, LeafKind, MessageDesc, Name, Ref, Type, Unknown};

/// The twin of a message. What lies further below it than so many messages may be anything: a message may contain
/// itself.
pub fn of(desc: &MessageDesc, depth: usize) -> Result<Desc, DescError> {
    Twins::default().of(desc, depth)
}

/// As [`of`], of one that keeps what is no field.
#[allow(dead_code, reason = "only some of those who include this file need it")]
pub fn that_keeps_all(desc: &MessageDesc, depth: usize) -> Result<Desc, DescError> {
    Twins::default().table(desc, depth, Unknown::Kept)
}

/// Those that were made, by name and depth: a message may lead to another in many ways.
#[derive(Default)]
struct Twins(BTreeMap<(Name, usize), Desc>);

impl Twins {
    fn of(&mut self, desc: &MessageDesc, depth: usize) -> Result<Desc, DescError> {
        let key = (desc.name.clone(), depth);
        if let Some(made) = self.0.get(&key) {
            return Ok(made.clone());
        }
        let made = self.table(desc, depth, Unknown::Dropped)?;
        self.0.insert(key, made.clone());
        Ok(made)
    }

    fn table(&mut self, desc: &MessageDesc, depth: usize, unknown: Unknown) -> Result<Desc, DescError> {
        let mut fields = Vec::new();
        self.add_fields(desc, depth, &mut fields)?;
        let gvk = desc.gvk.as_deref().cloned();
        MessageDesc::shared(desc.name.clone(), gvk, fields, unknown)
    }

    fn add_fields(&mut self, desc: &MessageDesc, depth: usize, out: &mut Vec<FieldDesc>) -> Result<(), DescError> {
        for field in &desc.fields {
            match &field.ty {
                Type::Message(inlined) if field.flags.has(Flags::INLINE) => self.add_fields(inlined, depth, out)?,
                _ => out.push(self.field(field, depth)?),
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &FieldDesc, depth: usize) -> Result<FieldDesc, DescError> {
        let twin = FieldDesc::shared(field.json.clone(), self.ty(&field.ty, depth)?, field.flags)
            .with_list(field.list)
            .with_patch(field.patch)
            .with_details(field.details.clone())
            .with_rules(field.rules.clone());
        Ok(twin)
    }

    fn ty(&mut self, ty: &Type, depth: usize) -> Result<Type, DescError> {
        Ok(match ty {
            Type::Message(desc) if desc.is(ObjectMeta::message_desc()) => ty.clone(),
            Type::Message(_) if depth == 0 => Type::Any,
            Type::Message(desc) => Type::Message(self.of(desc, depth - 1)?),
            Type::List(element) => Type::List(Ref::Shared(Arc::new(self.field(element, depth)?))),
            Type::Map(element) => Type::Map(Ref::Shared(Arc::new(self.field(element, depth)?))),
            Type::Leaf(LeafKind::Union) => Type::Any,
            other => other.clone(),
        })
    }
}
