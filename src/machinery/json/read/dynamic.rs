//! Values of dynamic messages: what they are is what the document says, whether the table agrees or not.

use super::{MAX_MESSAGE_DEPTH, Outcome, Reader};
use crate::decode::StrictKind;
use crate::json_text::scan::AFTER_PAIR;
use crate::reflect::dynamic::{DynamicSlot, DynamicValue};
use crate::reflect::{FieldDesc, Slot, Type, Unknown};

/// Doubles below it fit into 64 bits if they are whole.
const MAX_WHOLE: f64 = 9_223_372_036_854_775_808.0;

/// Whether unknown fields stay in a value of this type, be it of another one.
fn keeps_all(ty: &Type) -> bool {
    match ty {
        Type::Any => true,
        Type::Message(desc) => desc.unknown == Unknown::Kept,
        _ => false,
    }
}

impl<'a> Reader<'a> {
    /// A value where `ty` is declared.
    pub(super) fn dynamic(&mut self, ty: &'a Type, mut slot: DynamicSlot<'_>) -> Outcome {
        match (self.scan.peek(), ty) {
            (Some(b'n'), _) => {
                self.scan.literal("null")?;
                slot.set_null();
                Ok(())
            }
            // What is a struct or has encodings of its own is read as everywhere.
            (_, Type::Bytes | Type::Leaf(_)) => match slot.fill() {
                Slot::Optional(_) => self.scan.skip_value().map(drop),
                slot => self.value(ty, slot),
            },
            (Some(b'{'), Type::Message(_)) => self.value(ty, slot.fill()),
            (_, Type::Message(desc)) if !desc.is_dynamic() => self.no_message(desc),
            (Some(b'{'), _) => self.nested(|reader| match (ty, slot.fill_map()) {
                (Type::Map(element), Slot::Map(map)) => reader.map(element, map),
                (Type::Any, Slot::Map(map)) => reader.map(FieldDesc::ANY, map),
                (_, Slot::Map(map)) if !reader.prunes => reader.map(FieldDesc::ANY, map),
                _ => reader.pruned(),
            }),
            (Some(b'['), _) => self.nested(|reader| match (ty, slot.fill_list()) {
                (Type::List(element), Slot::List(list)) => reader.list(element, list),
                (ty, Slot::List(list)) if !reader.prunes || keeps_all(ty) => reader.list(FieldDesc::ANY, list),
                (_, Slot::List(list)) => reader.list(FieldDesc::SCALAR, list),
                _ => reader.scan.skip_value().map(drop),
            }),
            _ => {
                let value = self.scalar_value()?;
                slot.set(value);
                Ok(())
            }
        }
    }

    /// An object where there should be none: no field of it is known, so none stays.
    fn pruned(&mut self) -> Outcome {
        self.scan.pos += 1;
        if self.scan.peek() == Some(b'}') {
            self.scan.pos += 1;
            return Ok(());
        }
        loop {
            let key = self.scan.key()?;
            self.problem(StrictKind::UnknownField, key);
            self.scan.skip_value()?;
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b'}') => {
                    self.scan.pos += 1;
                    return Ok(());
                }
                _ => return Err(self.scan.fail(AFTER_PAIR)),
            }
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        if self.depth == MAX_MESSAGE_DEPTH {
            return Err(self.scan.too_deep());
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn scalar_value(&mut self) -> Result<DynamicValue, super::Failure> {
        Ok(match self.scan.peek() {
            Some(b'"') => DynamicValue::Str(self.scan.string()?.decode().into_owned()),
            Some(b't') => {
                self.scan.literal("true")?;
                DynamicValue::Bool(true)
            }
            Some(b'f') => {
                self.scan.literal("false")?;
                DynamicValue::Bool(false)
            }
            Some(b'-' | b'0'..=b'9') => {
                let digits = String::from_utf8_lossy(self.scan.number()?);
                match (digits.parse::<i64>(), digits.parse::<f64>()) {
                    (Ok(n), _) => DynamicValue::Int(n),
                    // Documents that are applied are YAML, which becomes JSON with whole numbers written as such.
                    (_, Ok(n)) if self.is_applied && n.fract() == 0.0 && n.abs() < MAX_WHOLE => {
                        DynamicValue::Int(n as i64)
                    }
                    // Zero has no sign, as it is stored.
                    (_, Ok(n)) if n.is_finite() => DynamicValue::Double(n + 0.0),
                    _ => {
                        self.wrong(&format!("number {digits}"), "float64");
                        DynamicValue::Null
                    }
                }
            }
            _ => return Err(self.scan.no_value()),
        })
    }
}
