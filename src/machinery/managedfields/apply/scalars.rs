//! Values of a document that have nothing below them: whether they fit the schema, and how they are to be read.

use super::document::Gather;
use super::go_value::{plain, syntax, type_name};
use crate::json;
use crate::reflect::intstr::IntOrString;
use crate::reflect::quantity::Quantity;
use crate::reflect::time::{Duration, MicroTime, Time};
use crate::reflect::{Leaf, LeafKind, Type};

impl Gather<'_> {
    /// A value that is neither a message, a map nor a list, or that is not what it should be.
    /// `dynamic`: of a dynamic message, which takes a number as it is.
    pub(super) fn scalar(&mut self, ty: &Type, dynamic: bool) {
        let start = self.cursor.position_of_next();
        let value = self.cursor.skip();
        let number = matches!(value.first(), Some(b'-' | b'0'..=b'9'));
        match (ty, value.first()) {
            (Type::String | Type::Bytes, Some(b'"')) | (Type::Bool, Some(b't' | b'f')) => {}
            (Type::String | Type::Bytes, _) => {
                let shown = syntax(value);
                self.problem(format!(
                    "expected string, got &value.valueUnstructured{{Value:{shown}}}"
                ));
            }
            (Type::Bool, _) => self.problem(format!("expected boolean, got &{{{}}}", plain(value))),
            (Type::Int32 | Type::Int64 | Type::Double, _) if !number => {
                self.problem(format!("expected numeric (int or float), got {}", type_name(value)));
            }
            (Type::Int32 | Type::Int64, _) if dynamic => {}
            (Type::Int32 | Type::Int64, _) => self.integer(ty, start, value),
            (Type::Double, _) => {}
            (Type::Message(_) | Type::Map(_), _) => {
                self.problem(format!("expected map, got &{{{}}}", plain(value)));
            }
            (Type::List(_), _) => self.problem(format!("expected list, got &{{{}}}", plain(value))),
            (Type::Leaf(LeafKind::Raw), _) => self.raw(start, value),
            (Type::Leaf(LeafKind::Union) | Type::Any | Type::Untyped, _) => {}
            (Type::Leaf(kind), Some(b'{' | b'[')) if *kind != LeafKind::IntOrString => {
                self.problem(format!("expected any scalar, got &{{{}}}", plain(value)));
            }
            (Type::Leaf(kind), _) => self.leaf(*kind, start, value),
        }
    }

    /// Whole numbers may be written with a fraction of zero, and those that are too large lose their upper half.
    fn integer(&mut self, ty: &Type, start: usize, value: &[u8]) {
        let digits = std::str::from_utf8(value).unwrap_or_default();
        let small = matches!(ty, Type::Int32);
        let number = match digits.parse::<i64>() {
            Ok(n) if !small || i32::try_from(n).is_ok() => return,
            Ok(n) => i64::from(n as i32),
            Err(_) => match digits.parse::<f64>() {
                Ok(n) if n.fract() == 0.0 && n.abs() < 9e18 => n as i64,
                _ => {
                    let to = if small { "int32" } else { "int64" };
                    self.unfit.get_or_insert(format!("cannot convert float64 to {to}"));
                    return;
                }
            },
        };
        self.edits.0.push((start..start + value.len(), number.to_string()));
    }

    /// Documents are trees of maps on their way through kube-apiserver, so that keys come out sorted.
    fn raw(&mut self, start: usize, value: &[u8]) {
        let sorted = json::sorted(value);
        if sorted != value {
            let text = String::from_utf8_lossy(&sorted).into_owned();
            self.edits.0.push((start..start + value.len(), text));
        }
    }

    /// One that can't be read is read as nothing, so that what follows it is read too.
    fn leaf(&mut self, kind: LeafKind, start: usize, value: &[u8]) {
        let mut leaf: Box<dyn Leaf> = match kind {
            LeafKind::Quantity => Box::new(Quantity::default()),
            LeafKind::IntOrString => Box::new(IntOrString::default()),
            LeafKind::Time => Box::new(Time::default()),
            LeafKind::MicroTime => Box::new(MicroTime::default()),
            LeafKind::Duration => Box::new(Duration::default()),
            LeafKind::Raw | LeafKind::Union => return,
        };
        match leaf.read_json(value) {
            Err(reason) => {
                self.unfit.get_or_insert(reason);
                self.restate();
                self.edits.0.push((start..start + value.len(), "null".to_owned()));
            }
            Ok(()) => {
                let mut canonical = Vec::with_capacity(value.len());
                leaf.write_json(&mut canonical);
                if canonical != value {
                    self.restate();
                }
            }
        }
    }
}
