//! CEL rules of definitions, with the types of what they see. The compiler of rules is that of servers, which lies
//! above this crate: `keelson-build` hands it to [`Builder::rules`](crate::Builder::rules).

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{Field, FieldType, Message, MessageId, Model, OBJECT_META};
use crate::options::Rule;
use crate::problem::Problem;

/// One expression of a rule.
#[derive(Clone, Debug)]
pub struct Expression<'a> {
    /// Its text.
    pub text: &'a str,
    /// What it has to evaluate to: [`ValueType::Bool`], or of a message's text [`ValueType::Text`].
    pub result: ValueType,
    /// The type of `self` and `oldSelf`.
    pub of: ValueType,
    /// `oldSelf` is an optional value.
    pub optional_old: bool,
}

/// The type of a value, as expressions see it.
#[derive(Clone, Debug)]
pub enum ValueType {
    /// Anything.
    Any,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Double,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// A time.
    Timestamp,
    /// A span of time.
    Duration,
    /// A list of values of one type.
    List(Box<ValueType>),
    /// Values of one type by texts.
    Map(Box<ValueType>),
    /// A message.
    Object(Arc<ObjectType>),
}

/// A message's name and fields by JSON names.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// Name of the OpenAPI definition.
    pub name: String,
    /// JSON names and types, in the order of the definition.
    pub fields: Vec<(String, ValueType)>,
}

/// Compiles an expression; the error is one line that says what is wrong.
pub type Compile = fn(&Expression<'_>) -> Result<(), String>;

/// Appends every rule of the build's own definitions that does not compile.
pub(crate) fn check(model: &Model, compile: Compile, problems: &mut Vec<Problem>) {
    let mut types = Types {
        model,
        known: HashMap::new(),
    };
    for (id, message) in model.messages.iter().enumerate() {
        if message.module.external || message.list_of.is_some() {
            continue;
        }
        let of_kind = message.kind.iter().flat_map(|kind| &kind.rules);
        let own: Vec<&Rule> = message.ty.rules.iter().chain(of_kind).collect();
        if !own.is_empty() {
            let of = types.message(id);
            for text in own.into_iter().flat_map(|rule| faults(rule, &of, compile)) {
                problems.push(Problem::new(&message.place, &message.name, text));
            }
        }
        for field in message.fields.iter().filter(|field| !field.options.rules.is_empty()) {
            let (of, subject) = (types.field(field), format!("{}.{}", message.name, field.name));
            for text in field.options.rules.iter().flat_map(|rule| faults(rule, &of, compile)) {
                problems.push(Problem::new(&field.place, &subject, text));
            }
        }
    }
}

fn faults(rule: &Rule, of: &ValueType, compile: Compile) -> Vec<String> {
    let expressions = [
        ("rule", &rule.rule, ValueType::Bool),
        ("message expression", &rule.message_expression, ValueType::Text),
    ];
    let written = expressions.into_iter().filter(|(_, text, _)| !text.is_empty());
    let fault = |(what, text, result): (&str, &String, ValueType)| {
        let expression = Expression {
            text,
            result,
            of: of.clone(),
            optional_old: rule.optional_old_self,
        };
        let why = compile(&expression).err()?;
        Some(format!("the {what} {text:?} does not compile: {why}"))
    };
    written.filter_map(fault).collect()
}

/// Types that were made on the way; a message that leads back to itself is any value there.
struct Types<'a> {
    model: &'a Model,
    known: HashMap<MessageId, ValueType>,
}

impl Types<'_> {
    fn message(&mut self, id: MessageId) -> ValueType {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let Some(message) = self.model.message(id) else {
            return ValueType::Any;
        };
        self.known.insert(id, ValueType::Any);
        let ty = match message.is_leaf() {
            true => leaf(message),
            false => {
                let mut fields = Vec::new();
                if message.kind.is_some() {
                    fields.extend(["apiVersion", "kind"].map(|name| (name.to_owned(), ValueType::Text)));
                }
                self.fields(message, &mut fields);
                let name = message.openapi.clone();
                ValueType::Object(Arc::new(ObjectType { name, fields }))
            }
        };
        self.known.insert(id, ty.clone());
        ty
    }

    fn fields(&mut self, message: &Message, fields: &mut Vec<(String, ValueType)>) {
        let model = self.model;
        for field in &message.fields {
            // Rules see no more of metadata.
            if message.full_name == OBJECT_META && !matches!(field.json.as_str(), "name" | "generateName") {
                continue;
            }
            let inlined = field.ty.message().filter(|_| field.options.inline);
            match inlined.and_then(|id| model.message(id)) {
                Some(inner) => self.fields(inner, fields),
                None => fields.push((field.json.clone(), self.field(field))),
            }
        }
    }

    fn field(&mut self, field: &Field) -> ValueType {
        self.value(&field.ty, &field.options.format)
    }

    /// `format`: of the field itself; items have none that rules would see.
    fn value(&mut self, ty: &FieldType, format: &str) -> ValueType {
        match ty {
            FieldType::Bool => ValueType::Bool,
            FieldType::Int32 | FieldType::Int64 => ValueType::Int,
            FieldType::Double => ValueType::Double,
            FieldType::String => match format {
                "date-time" | "date" => ValueType::Timestamp,
                "duration" => ValueType::Duration,
                "byte" => ValueType::Bytes,
                _ => ValueType::Text,
            },
            FieldType::Bytes => ValueType::Bytes,
            FieldType::Message(id) => self.message(*id),
            FieldType::List(item) => ValueType::List(Box::new(self.value(item, ""))),
            FieldType::Map(item) => ValueType::Map(Box::new(self.value(item, ""))),
        }
    }
}

/// What rules see of a hand-written type.
fn leaf(message: &Message) -> ValueType {
    match message.ty.rust.rsplit("::").next().unwrap_or_default() {
        "Time" | "MicroTime" => ValueType::Timestamp,
        "Quantity" | "Duration" => ValueType::Text,
        _ => ValueType::Any,
    }
}
