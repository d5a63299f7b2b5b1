//! Version plans: which versions a kind has, which one is the hub, and how each message gets there and back, field by
//! field.

mod selectable;

use std::collections::BTreeMap;

use crate::model::{Field, FieldType, Message, MessageId, Model};
use crate::problem::{Place, Problem};
use selectable::{Selectable, selectable};

/// One kind of one group.
#[derive(Debug)]
pub struct Family {
    pub versions: Vec<MessageId>,
    pub storage: MessageId,
    pub hub: MessageId,
}

/// The conversion of one message to its counterpart in the hub version and back.
#[derive(Debug)]
pub struct Pair {
    pub version: MessageId,
    pub hub: MessageId,
    /// Module of the hand-written functions; `None` where fields suffice.
    pub hook: Option<String>,
    pub fields: Vec<FieldPair>,
}

#[derive(Debug)]
pub struct FieldPair {
    /// Index of the field in the version's message.
    pub version: usize,
    /// Index of the field in the hub's message.
    pub hub: usize,
    /// Index of the pair that converts what stands in the field; `None`: the types are the same.
    pub pair: Option<usize>,
}

/// All conversions of a build.
#[derive(Debug, Default)]
pub struct Plan {
    pub families: Vec<Family>,
    pub pairs: Vec<Pair>,
    pub selectable: Selectable,
    /// Version's message, hub's message and hook → index of the pair.
    index: BTreeMap<(MessageId, MessageId, String), usize>,
}

impl Plan {
    /// Plans all conversions; what cannot be planned becomes a problem.
    pub fn new(model: &Model, problems: &mut Vec<Problem>) -> Plan {
        let mut plan = Plan {
            families: families(model, problems),
            ..Plan::default()
        };
        let versions: Vec<(MessageId, MessageId)> = plan
            .families
            .iter()
            .flat_map(|f| f.versions.iter().filter(|v| **v != f.hub).map(|v| (*v, f.hub)))
            .collect();
        for (version, hub) in versions {
            let hook = model
                .message(version)
                .and_then(|m| m.kind.as_ref())
                .map(|k| k.conversion.clone());
            plan.pair(model, version, hub, &hook.unwrap_or_default(), problems);
        }
        plan.selectable = selectable(model, &plan, problems);
        plan
    }

    /// The pair of a kind's version.
    pub fn of_kind(&self, version: MessageId) -> Option<usize> {
        let family = self.family(version)?;
        self.pairs
            .iter()
            .position(|p| p.version == version && p.hub == family.hub)
    }

    pub fn family(&self, version: MessageId) -> Option<&Family> {
        self.families.iter().find(|f| f.versions.contains(&version))
    }

    fn pair(
        &mut self,
        model: &Model,
        version: MessageId,
        hub: MessageId,
        hook: &str,
        problems: &mut Vec<Problem>,
    ) -> Option<usize> {
        if let Some(index) = self.index.get(&(version, hub, hook.to_owned())) {
            return Some(*index);
        }
        let (from, to) = (model.message(version)?, model.message(hub)?);
        let index = self.pairs.len();
        let has_hook = !from.ty.differs.is_empty();
        let pair = Pair {
            version,
            hub,
            hook: has_hook.then(|| hook.to_owned()),
            fields: Vec::new(),
        };
        self.pairs.push(pair);
        self.index.insert((version, hub, hook.to_owned()), index);
        let mut differences = Differences {
            from,
            to,
            found: Vec::new(),
        };
        let mut fields = Vec::new();
        for (i, field) in from.fields.iter().enumerate() {
            let Some((j, other)) = counterpart(field, to) else {
                differences.note(&field.name, field, What::VersionOnly);
                continue;
            };
            match self.field(model, (from, field), (to, other), hook, problems) {
                Ok(pair) => fields.push(FieldPair {
                    version: i,
                    hub: j,
                    pair,
                }),
                Err(()) if field.optional != other.optional => differences.note(&field.name, field, What::Presence),
                Err(()) => differences.note(&field.name, field, What::OtherType),
            }
        }
        differences.hub_only();
        differences.report(hook, problems);
        self.pairs.get_mut(index)?.fields = fields;
        Some(index)
    }

    /// How one field is carried over; `Err`: its types do not match.
    fn field(
        &mut self,
        model: &Model,
        (from, field): (&Message, &Field),
        (to, other): (&Message, &Field),
        hook: &str,
        problems: &mut Vec<Problem>,
    ) -> Result<Option<usize>, ()> {
        if field.optional != other.optional || !same_shape(&field.ty, &other.ty) {
            return Err(());
        }
        let (Some(a), Some(b)) = (field.ty.message(), other.ty.message()) else {
            return Ok(None);
        };
        if a == b {
            return Ok(None);
        }
        let (Some(inner), Some(outer)) = (model.message(a), model.message(b)) else {
            return Err(());
        };
        let belongs = inner.package == from.package && outer.package == to.package;
        let name = if inner.ty.hub_name.is_empty() {
            &inner.name
        } else {
            &inner.ty.hub_name
        };
        if !belongs || *name != outer.name || inner.is_leaf() || outer.is_leaf() {
            return Err(());
        }
        self.pair(model, a, b, hook, problems).map(Some).ok_or(())
    }
}

/// Equal but for the messages that stand in it.
fn same_shape(a: &FieldType, b: &FieldType) -> bool {
    match (a, b) {
        (FieldType::Message(_), FieldType::Message(_)) => true,
        (FieldType::List(a), FieldType::List(b)) | (FieldType::Map(a), FieldType::Map(b)) => same_shape(a, b),
        _ => a == b,
    }
}

/// The field of the hub's message that this field of the version's message becomes.
fn counterpart<'a>(field: &Field, hub: &'a Message) -> Option<(usize, &'a Field)> {
    let name = if field.options.hub_name.is_empty() {
        &field.name
    } else {
        &field.options.hub_name
    };
    hub.fields.iter().enumerate().find(|(_, f)| f.name == *name)
}

/// How a field differs from its counterpart.
#[derive(Clone, Copy)]
enum What {
    VersionOnly,
    OtherType,
    Presence,
    HubOnly,
}

impl What {
    /// What is wrong, and the first of the two remedies.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            What::VersionOnly => (
                "is not in the hub version",
                "write `hub_name` if it has another name there",
            ),
            What::OtherType => ("is of another type in the hub version", "make both the same"),
            What::Presence => ("is `optional` here or in the hub version alone", "make both the same"),
            What::HubOnly => (
                "is only in the hub version",
                "write it as `hub_name` of the field that becomes it",
            ),
        }
    }
}

/// What differs between a message and its counterpart.
struct Differences<'a> {
    from: &'a Message,
    to: &'a Message,
    found: Vec<(String, Place, What)>,
}

impl Differences<'_> {
    fn note(&mut self, name: &str, field: &Field, what: What) {
        self.found.push((name.to_owned(), field.place.clone(), what));
    }

    fn hub_only(&mut self) {
        for other in &self.to.fields {
            let taken = self
                .from
                .fields
                .iter()
                .any(|f| counterpart(f, self.to).is_some_and(|(_, o)| o.name == other.name));
            if !taken {
                self.found
                    .push((other.name.clone(), self.from.place.clone(), What::HubOnly));
            }
        }
    }

    /// What is wrong with a `hub_name` that the hub version does not have.
    fn misnamed(&self, name: &str) -> Option<String> {
        let field = self.from.fields.iter().find(|field| field.name == *name)?;
        let wanted = Some(&field.options.hub_name).filter(|wanted| !wanted.is_empty())?;
        let known: Vec<&str> = self.to.fields.iter().map(|field| field.name.as_str()).collect();
        let text = format!(
            "`hub_name` {wanted:?} is no field of the hub version ({}): write one of {}",
            self.to.full_name,
            known.join(", ")
        );
        (!known.contains(&wanted.as_str())).then_some(text)
    }

    /// Every difference must be named in the definition, and nothing that does not exist.
    fn report(&self, hook: &str, problems: &mut Vec<Problem>) {
        let (from, to) = (self.from, self.to);
        let snake = crate::names::snake(&from.name);
        for (name, place, what) in &self.found {
            if from.ty.differs.contains(name) {
                continue;
            }
            if let Some(text) = self.misnamed(name) {
                problems.push(Problem::new(place, format!("{}.{name}", from.name), text));
                continue;
            }
            let (what, remedy) = what.texts();
            let text = format!(
                "{what} ({}): {remedy}, or add {name:?} to `differs` in (keelson.type) of {} and carry it over in \
                 `to_hub_{snake}` and `from_hub_{snake}`",
                to.full_name, from.name
            );
            problems.push(Problem::new(place, format!("{}.{name}", from.name), text));
        }
        for name in &from.ty.differs {
            let exists = |m: &Message| m.fields.iter().any(|f| f.name == *name);
            if !exists(from) && !exists(to) {
                let text = format!("`differs` names {name:?}, which is a field of neither version: take it out");
                problems.push(Problem::new(&from.place, &from.name, text));
            }
        }
        if !from.ty.differs.is_empty() && hook.is_empty() {
            let text = format!(
                "`differs` needs functions that carry the fields over: write `conversion: \"crate::…\"` in \
                 (keelson.kind), a module with `to_hub_{snake}(from: &{name}, to: &mut {hub}) -> Result<(), String>` \
                 and `from_hub_{snake}(from: &{hub}, to: &mut {name}) -> Result<(), String>`",
                name = rust_path(from),
                hub = rust_path(to),
            );
            problems.push(Problem::new(&from.place, &from.name, text));
        }
    }
}

/// The path of a message below the module that the generated code stands in.
pub fn rust_path(message: &Message) -> String {
    format!("{}::{}", message.module.path.join("::"), message.name)
}

/// Groups kinds with a resource by group and name and settles which version is stored and which is the hub.
fn families(model: &Model, problems: &mut Vec<Problem>) -> Vec<Family> {
    let mut all: BTreeMap<(String, String), Vec<MessageId>> = BTreeMap::new();
    for (id, message) in model.messages.iter().enumerate() {
        if let Some(kind) = message.resource().filter(|_| !message.module.external) {
            let own = (message.group_version.group.as_str(), message.name.as_str());
            let (group, name) = crate::names::split_kind(&kind.same_as).map_or(own, |(group, _, name)| (group, name));
            all.entry((group.to_owned(), name.to_owned())).or_default().push(id);
        }
    }
    let mut families = Vec::new();
    for versions in all.into_values() {
        let with = |flag: fn(&crate::options::Kind) -> bool| -> Vec<MessageId> {
            let has = |id: &MessageId| model.message(*id).and_then(Message::resource).is_some_and(flag);
            versions.iter().copied().filter(has).collect()
        };
        let (storage, hub) = (with(|k| k.storage), with(|k| k.hub));
        let mut wrong = |id: Option<&MessageId>, text: String| {
            if let Some(message) = id.and_then(|id| model.message(*id)) {
                problems.push(Problem::new(&message.place, &message.name, text));
            }
        };
        let names = |ids: &[MessageId]| {
            let names: Vec<&str> = ids
                .iter()
                .filter_map(|id| Some(model.message(*id)?.group_version.version.as_str()))
                .collect();
            names.join(", ")
        };
        let own = with(|k| k.same_as.is_empty());
        let stored = match (storage.as_slice(), own.as_slice()) {
            ([one], _) | ([], [one]) => *one,
            ([], [first, ..]) => {
                let text = format!(
                    "no version of {} is stored: write `storage: true` in (keelson.kind) of one of them",
                    names(&versions)
                );
                wrong(Some(first), text);
                *first
            }
            (several, _) => {
                let text = format!(
                    "versions {} are all stored: leave `storage: true` in one of them",
                    names(several)
                );
                wrong(several.last(), text);
                several.first().copied().unwrap_or_default()
            }
        };
        if hub.len() > 1 {
            let text = format!(
                "versions {} are all hubs: leave `hub: true` in one of them",
                names(&hub)
            );
            wrong(hub.last(), text);
        }
        let hub = hub.first().copied().unwrap_or(stored);
        families.push(Family {
            versions,
            storage: stored,
            hub,
        });
    }
    families
}
