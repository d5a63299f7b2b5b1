//! Mutations of an object: each field missing, null, empty, with each value of [`values`], each list with its first
//! element twice, pairs of messages that stand beside each other, and pairs of mutations drawn by a seed.

use keelson_machinery::reflect::{FieldDesc, Flags, MessageDesc, Type};
use serde_json::{Value, json};

use super::super::changes::{Step, path_name};
use super::objects::Model;
use super::values::{self, Thoroughness};

/// How deep messages are walked that the object does not have.
const MADE_UP: usize = 12;
/// The same of objects after the first of a kind, whose fields the first has shown already.
const MADE_UP_LATER: usize = 1;
/// Pairs of fields that are set together, of each message; and of mutations, of each object.
const PAIRS: usize = 10;
const DOUBLES: usize = 40;
/// Messages whose fields are not those of a kind.
const FOREIGN: [&str; 4] = ["ManagedFieldsEntry", "FieldsV1", "JSONSchemaProps", "ListMeta"];

/// Changes that are made together; `None`: the field is taken away.
pub struct Mutation {
    pub name: String,
    changes: Vec<(Vec<Step>, Option<Value>)>,
}

impl Mutation {
    /// The object with the changes.
    pub fn applied(&self, object: &Value) -> Value {
        let mut object = object.clone();
        for (path, value) in &self.changes {
            match value {
                Some(value) => *place(&mut object, path) = value.clone(),
                None => take(&mut object, path),
            }
        }
        object
    }
}

/// The place at the end of a path; what leads to it is made.
fn place<'a>(object: &'a mut Value, path: &[Step]) -> &'a mut Value {
    let mut at = object;
    for step in path {
        let is_fitting = match step {
            Step::Key(_) => at.is_object(),
            Step::Place(_) => at.is_array(),
        };
        if !is_fitting {
            *at = if matches!(step, Step::Key(_)) {
                json!({})
            } else {
                json!([])
            };
        }
        at = match step {
            Step::Key(key) => &mut at[key.as_str()],
            Step::Place(place) => {
                let list = at.as_array_mut().unwrap();
                list.resize((*place + 1).max(list.len()), Value::Null);
                &mut list[*place]
            }
        };
    }
    at
}

fn take(object: &mut Value, path: &[Step]) {
    let (last, parents) = path.split_last().unwrap();
    let parent = parents.iter().try_fold(object, |at, step| match step {
        Step::Key(key) => at.get_mut(key),
        Step::Place(place) => at.get_mut(place),
    });
    if let (Some(Value::Object(parent)), Step::Key(key)) = (parent, last) {
        parent.remove(key);
    }
}

/// A short text that no other value of the field has.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    let Some(long) = ["x", "y"].iter().find(|x| text.contains(&x.repeat(40))) else {
        return text;
    };
    let run = text.matches(*long).count();
    format!("{} … {run} {long}", text.chars().take(12).collect::<String>())
}

/// A sequence of numbers that a seed and a name determine.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64, name: &str) -> Draw {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Draw(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, hash))
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }
}

/// Which part of an object is mutated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All but its status.
    Itself,
    Status,
}

/// All mutations of an object; `first`: the first of its kind.
pub fn of_object(model: &Model, object: &Value, part: Part, first: bool, draw: &mut Draw) -> Vec<Mutation> {
    let mut walk = Walk {
        model,
        part,
        how: if first { Thoroughness::All } else { Thoroughness::Few },
        made_up: if first {
            model.depth.unwrap_or(MADE_UP)
        } else {
            MADE_UP_LATER
        },
        path: Vec::new(),
        within: Vec::new(),
        draw,
        all: Vec::new(),
    };
    walk.message(model.message, object, 0);
    let mut all = walk.all;
    let single = all.len();
    for _ in 0..DOUBLES.min(single / 4) {
        let (one, other) = (&all[draw.below(single)], &all[draw.below(single)]);
        let double = Mutation {
            name: format!("{} & {}", one.name, other.name),
            changes: one.changes.iter().chain(&other.changes).cloned().collect(),
        };
        if all[single..].iter().all(|mutation| mutation.name != double.name) {
            all.push(double);
        }
    }
    all
}

struct Walk<'a> {
    model: &'a Model,
    part: Part,
    how: Thoroughness,
    made_up: usize,
    path: Vec<Step>,
    /// Names of the messages around.
    within: Vec<String>,
    draw: &'a mut Draw,
    all: Vec<Mutation>,
}

impl Walk<'_> {
    fn push(&mut self, what: String, value: Option<Value>) {
        let name = format!("{} {what}", path_name(&self.path));
        let changes = vec![(self.path.clone(), value)];
        self.all.push(Mutation { name, changes });
    }

    fn set(&mut self, value: Value) {
        self.push(format!("= {}", shown(&value)), Some(value));
    }

    /// `made`: how many messages around are not in the object.
    fn message(&mut self, desc: &MessageDesc, value: &Value, made: usize) {
        let short = desc.short_name();
        let again = self.within.iter().any(|name| name == short);
        if made > self.made_up || again || FOREIGN.contains(&short) {
            return;
        }
        self.within.push(short.to_owned());
        self.pairs(desc, value);
        for field in &desc.fields {
            match &field.ty {
                Type::Message(inner) if field.flags.has(Flags::INLINE) => self.message(inner, value, made),
                _ => self.field(field, &value[field.json.as_str()], made),
            }
        }
        self.within.pop();
    }

    /// Pairs of messages, of which often only one may be there.
    fn pairs(&mut self, desc: &MessageDesc, value: &Value) {
        let is_choice = |field: &&FieldDesc| field.ty.is_message() && !field.flags.has(Flags::INLINE);
        let fields: Vec<&FieldDesc> = desc.fields.iter().filter(is_choice).collect();
        let is_root = self.path.is_empty();
        if fields.len() < 2 || is_root {
            return;
        }
        let all = fields.len() * (fields.len() - 1) / 2;
        let mut chosen: Vec<(usize, usize)> = Vec::new();
        for turn in 0..all.min(PAIRS) {
            let mut pairs = (0..fields.len()).flat_map(|a| (a + 1..fields.len()).map(move |b| (a, b)));
            let nth = if all <= PAIRS { turn } else { self.draw.below(all) };
            chosen.extend(pairs.nth(nth));
        }
        chosen.sort_unstable();
        chosen.dedup();
        for (a, b) in chosen {
            let (a, b) = (&fields[a].json, &fields[b].json);
            let absent = [a, b].into_iter().filter(|name| value[name.as_str()].is_null());
            let changes = absent.map(|name| {
                let step = Step::Key(name.to_string());
                (self.path.iter().cloned().chain([step]).collect(), Some(json!({})))
            });
            let name = format!("{} with {a} and {b}", path_name(&self.path));
            let changes = changes.collect();
            self.all.push(Mutation { name, changes });
        }
    }

    fn field(&mut self, field: &FieldDesc, value: &Value, made: usize) {
        let is_root = self.path.is_empty();
        let name = field.json.as_str();
        let is_other_part = is_root && (name == "status") != (self.part == Part::Status);
        // What is said of metadata is the same of all objects of a kind.
        let is_known = is_root && name == "metadata" && self.how == Thoroughness::Few;
        let is_server_s = matches!((is_root, name), (true, "kind" | "apiVersion") | (_, "managedFields"));
        if is_other_part || is_known || is_server_s {
            return;
        }
        self.path.push(Step::Key(name.to_owned()));
        let at = path_name(&self.path);
        let is_left = self.model.leave.iter().any(|left| at.starts_with(left.as_str()));
        let is_along = |only: &String| at.starts_with(only.as_str()) || only.starts_with(&format!("{at}."));
        let is_meant = self.model.only.is_empty() || self.model.only.iter().any(is_along);
        if !is_left && is_meant {
            if !value.is_null() {
                self.push("gone".to_owned(), None);
            }
            if self.how == Thoroughness::All {
                self.set(Value::Null);
                values::of_wrong_type(&field.ty)
                    .into_iter()
                    .for_each(|wrong| self.set(wrong));
            }
            self.content(field, value, made);
        }
        self.path.pop();
    }

    fn content(&mut self, field: &FieldDesc, value: &Value, made: usize) {
        match &field.ty {
            Type::Message(desc) => {
                self.set(json!({}));
                self.message(desc, value, made + usize::from(value.is_null()));
            }
            Type::List(item) => self.list(field, &item.ty, value, made),
            Type::Map(item) => {
                self.set(json!({}));
                values::of_map(&item.ty)
                    .into_iter()
                    .for_each(|content| self.set(content));
            }
            ty => values::of_scalar(field, ty, self.how)
                .into_iter()
                .for_each(|value| self.set(value)),
        }
    }

    fn list(&mut self, field: &FieldDesc, item: &Type, value: &Value, made: usize) {
        self.set(json!([]));
        let first = value.get(0);
        let Type::Message(desc) = item else {
            let values = values::of_scalar(field, item, self.how);
            let twice = first.or(values.get(1)).map(|value| json!([value, value]));
            values.into_iter().for_each(|value| self.set(json!([value])));
            if let Some(twice) = twice {
                self.push("twice".to_owned(), Some(twice));
            }
            return;
        };
        self.set(json!([{}]));
        let one = first.cloned().unwrap_or_else(|| json!({}));
        self.push("twice".to_owned(), Some(json!([one, one])));
        self.path.push(Step::Place(0));
        self.message(desc, first.unwrap_or(&Value::Null), made + usize::from(first.is_none()));
        self.path.pop();
    }
}
