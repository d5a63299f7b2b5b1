//! Types of expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What an expression evaluates to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Anything; mistakes show when it runs.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    /// An object with known fields.
    Object(Arc<ObjectType>),
    /// A value that only functions look into.
    Opaque(&'static str),
    Optional(Arc<Type>),
    /// The type of a type.
    Type(Arc<Type>),
    /// A type that is not known yet.
    Variable(u32),
    /// That of a part with a mistake: it fits everywhere, so that the mistake is told once.
    Error,
}

/// An object's name and fields. Two of the same name are the same.
#[derive(Debug)]
pub struct ObjectType {
    pub name: String,
    pub fields: BTreeMap<String, Type>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ObjectType {}

impl Type {
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    pub fn optional(of: Type) -> Type {
        Type::Optional(Arc::new(of))
    }

    pub fn object<'a>(name: &str, fields: impl IntoIterator<Item = (&'a str, Type)>) -> Type {
        Type::Object(Arc::new(ObjectType {
            name: name.to_owned(),
            fields: fields.into_iter().map(|(name, ty)| (name.to_owned(), ty)).collect(),
        }))
    }

    /// The name without what it is made of.
    pub(super) fn name(&self) -> String {
        match self {
            Type::List(_) => "list".to_owned(),
            Type::Map(_) => "map".to_owned(),
            Type::Optional(_) => "optional_type".to_owned(),
            Type::Type(_) => "type".to_owned(),
            other => other.to_string(),
        }
    }

    /// The name in messages of the checker, which has short ones for some.
    pub(super) fn shown(&self) -> String {
        match self {
            Type::Null => "null".to_owned(),
            Type::Variable(n) => format!("_var{n}"),
            Type::Duration => "duration".to_owned(),
            Type::Timestamp => "timestamp".to_owned(),
            Type::List(of) => format!("list({})", of.shown()),
            Type::Map(of) => format!("map({}, {})", of.0.shown(), of.1.shown()),
            Type::Optional(of) => format!("optional_type({})", of.shown()),
            Type::Type(of) => format!("type({})", of.shown()),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Type::Dyn | Type::Variable(_) => "dyn",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(of) => return write!(f, "list({of})"),
            Type::Map(of) => return write!(f, "map({}, {})", of.0, of.1),
            Type::Object(of) => &of.name,
            Type::Opaque(name) => name,
            Type::Optional(of) => return write!(f, "optional_type({of})"),
            Type::Type(of) => return write!(f, "type({of})"),
            Type::Error => "!error!",
        };
        f.write_str(name)
    }
}

/// Types that are not known yet, and what was found out about them.
#[derive(Clone, Default)]
pub(super) struct Inference {
    known: Vec<Option<Type>>,
}

impl Inference {
    pub fn fresh(&mut self) -> Type {
        self.known.push(None);
        Type::Variable(u32::try_from(self.known.len() - 1).unwrap_or(u32::MAX))
    }

    /// The type with all that is known filled in.
    pub fn resolve(&self, ty: &Type) -> Type {
        match ty {
            Type::Variable(n) => match self.known.get(*n as usize).and_then(Option::as_ref) {
                Some(known) => self.resolve(known),
                None => ty.clone(),
            },
            Type::List(of) => Type::list(self.resolve(of)),
            Type::Map(of) => Type::map(self.resolve(&of.0), self.resolve(&of.1)),
            Type::Optional(of) => Type::optional(self.resolve(of)),
            Type::Type(of) => Type::Type(Arc::new(self.resolve(of))),
            other => other.clone(),
        }
    }

    /// Whether a value of the type `given` may stand where `wanted` is expected. Finds out about unknown types.
    pub fn accept(&mut self, wanted: &Type, given: &Type) -> bool {
        let (wanted, given) = (self.resolve(wanted), self.resolve(given));
        match (&wanted, &given) {
            (a, b) if a == b => true,
            (Type::Variable(n), other) | (other, Type::Variable(n)) => {
                let open = !mentions(other, *n);
                if let (true, Some(known)) = (open, self.known.get_mut(*n as usize)) {
                    *known = Some(other.clone());
                }
                open
            }
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (a, Type::Null) | (Type::Null, a) => matches!(
                a,
                Type::Object(_) | Type::Duration | Type::Timestamp | Type::Opaque(_) | Type::Optional(_)
            ),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.accept(a, b),
            (Type::Map(a), Type::Map(b)) => self.accept(&a.0, &b.0) && self.accept(&a.1, &b.1),
            (Type::Type(_), Type::Type(_)) => true,
            _ => false,
        }
    }

    /// The type with whatever nothing is known about as anything.
    pub fn finish(&self, ty: &Type) -> Type {
        match self.resolve(ty) {
            Type::Variable(_) => Type::Dyn,
            Type::List(of) => Type::list(self.finish(&of)),
            Type::Map(of) => Type::map(self.finish(&of.0), self.finish(&of.1)),
            Type::Optional(of) => Type::optional(self.finish(&of)),
            Type::Type(of) => Type::Type(Arc::new(self.finish(&of))),
            other => other,
        }
    }
}

fn mentions(ty: &Type, n: u32) -> bool {
    match ty {
        Type::Variable(m) => *m == n,
        Type::List(of) | Type::Optional(of) | Type::Type(of) => mentions(of, n),
        Type::Map(of) => mentions(&of.0, n) || mentions(&of.1, n),
        _ => false,
    }
}
