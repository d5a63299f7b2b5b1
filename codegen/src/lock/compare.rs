//! The comparison of definitions with the records: what stored objects would not survive, and what they will show.

use std::collections::{BTreeMap, BTreeSet};

use super::from_model::{folder, line, records};
use super::types::Line;
use super::{FILE, Records};
use crate::model::{Message, MessageId, Model};
use crate::problem::{Place, Problem};

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Findings {
    /// The records to write: what was there, and what is new.
    pub records: Records,
    /// What stored objects would not survive.
    pub problems: Vec<Problem>,
    /// What changes for stored objects that can be read.
    pub notes: Vec<Problem>,
}

/// Compares the definitions with what is recorded. `shown_root`: how problems name the folder of the definitions.
pub fn compare(model: &Model, recorded: &Records, shown_root: &str) -> Findings {
    let was_stored = |folder: &str, kind: &str| {
        let record = recorded.get(folder);
        record.is_some_and(|record| record.kinds.contains_key(kind))
    };
    let mut comparison = Comparison {
        model,
        recorded,
        shown_root,
        seen: BTreeSet::new(),
        left: Vec::new(),
        findings: Findings {
            records: records(model, shown_root, was_stored),
            ..Findings::default()
        },
    };
    comparison.kinds();
    comparison.namesakes();
    while let Some((old, new)) = comparison.left.pop() {
        comparison.message(&old, new);
    }
    let mut findings = comparison.findings;
    // What no kind is made of any more may come back.
    for (folder, record) in recorded {
        let kept = findings.records.entry(folder.clone()).or_default();
        for (name, fields) in &record.messages {
            kept.messages.entry(name.clone()).or_insert_with(|| fields.clone());
        }
    }
    findings.problems.sort();
    findings.notes.sort();
    findings
}

struct Comparison<'a> {
    model: &'a Model,
    recorded: &'a Records,
    shown_root: &'a str,
    /// Recorded messages and those that stand in their place.
    seen: BTreeSet<(String, MessageId)>,
    left: Vec<(String, MessageId)>,
    findings: Findings,
}

impl Comparison<'_> {
    fn kinds(&mut self) {
        for (of, record) in self.recorded {
            for (kind, old) in &record.kinds {
                let is = |message: &Message| {
                    message.name == *kind
                        && message.resource().is_some()
                        && folder(message, self.shown_root).as_deref() == Some(of)
                };
                match self.model.messages.iter().position(is) {
                    Some(new) => self.left.push((old.clone(), new)),
                    None => self.kind_is_gone(of, kind),
                }
            }
        }
    }

    /// Messages under recorded names, also where no field leads from the one to the other: a field that is gone and had
    /// it may come back.
    fn namesakes(&mut self) {
        let recorded = self.recorded.values().flat_map(|record| record.messages.keys());
        for name in recorded {
            let stored = |records: &Records| records.values().any(|record| record.messages.contains_key(name));
            let is = |message: &Message| message.full_name == *name && stored(&self.findings.records);
            if let Some(new) = self.model.messages.iter().position(is) {
                self.left.push((name.clone(), new));
            }
        }
    }

    fn kind_is_gone(&mut self, of: &str, kind: &str) {
        let place = Place {
            file: format!("{}/{of}/{FILE}", self.shown_root),
            line: 0,
        };
        let text = "objects of this kind may be stored in this version, which defines it no longer: nobody could read \
                    them. Keep the definition (its objects may be stored in another version from now on), or delete the \
                    kind's line here if no store has any";
        self.findings.problems.push(Problem::new(&place, kind, text));
    }

    fn message(&mut self, old: &str, new: MessageId) {
        if !self.seen.insert((old.to_owned(), new)) {
            return;
        }
        let recorded = self.recorded.values().find_map(|record| record.messages.get(old));
        let (Some(recorded), Some(message)) = (recorded, self.model.message(new)) else {
            return;
        };
        for field in &message.fields {
            let now = line(self.model, field);
            let subject = format!("{}.{}", message.name, field.name);
            match recorded.get(&field.number) {
                Some(was) => match refusal(field.number, was, &now, recorded) {
                    Some(why) => self.findings.problems.push(Problem::new(&field.place, subject, why)),
                    None => {
                        self.note(&field.place, &subject, was, &now);
                        if let (Some(before), Some(id)) = (was.ty.message(), field.ty.message()) {
                            self.inner(before, id, &field.place, &subject);
                        }
                    }
                },
                None => {
                    let moved = recorded.iter().find(|(_, was)| was.name == now.name && !was.is_gone);
                    if let Some((number, _)) = moved {
                        let why = format!(
                            "it has the number {number} in stored objects, whose values {} would not find: write {number} \
                             again, or give the new field another name",
                            field.number
                        );
                        self.findings.problems.push(Problem::new(&field.place, subject, why));
                    }
                }
            }
        }
        self.keep_gone(message, recorded);
    }

    /// The messages that stood and stand in a field.
    fn inner(&mut self, before: &str, id: MessageId, place: &Place, subject: &str) {
        let Some(now) = self.model.message(id) else { return };
        let is_recorded = self
            .recorded
            .values()
            .any(|record| record.messages.contains_key(before));
        if is_recorded && !now.is_leaf() && !now.module.external {
            self.left.push((before.to_owned(), id));
        } else if now.full_name != before {
            let why = format!(
                "stored objects have a {before} here, which can't be read as {}: give a new field a number that was never \
                 used",
                now.full_name
            );
            self.findings.problems.push(Problem::new(place, subject, why));
        }
    }

    /// Numbers of fields that are no more are kept, so that none is given to another field.
    fn keep_gone(&mut self, message: &Message, recorded: &BTreeMap<u32, Line>) {
        let Some(folder) = folder(message, self.shown_root) else {
            return;
        };
        for (number, was) in recorded {
            if message.fields.iter().any(|field| field.number == *number) {
                continue;
            }
            if !was.is_gone {
                let text = format!(
                    "{} (number {number}) was removed: stored values are not shown any more, and are lost when their \
                     objects are written again",
                    was.name
                );
                self.findings
                    .notes
                    .push(Problem::new(&message.place, &message.name, text));
            }
            let record = self.findings.records.entry(folder.clone()).or_default();
            let fields = record.messages.entry(message.full_name.clone()).or_default();
            fields.entry(*number).or_insert_with(|| Line {
                is_gone: true,
                ..was.clone()
            });
        }
    }

    fn note(&mut self, place: &Place, subject: &str, was: &Line, now: &Line) {
        let mut notes = Vec::new();
        if was.optional != now.optional {
            notes.push(match now.optional {
                true => "zero values of stored objects are absent from now on".to_owned(),
                false => "stored objects that lack it have a zero value from now on".to_owned(),
            });
        }
        if was.ty != now.ty && was.ty.message().is_none() {
            notes.push(format!(
                "it was {}: older servers can't read all that is stored as {}",
                was.ty, now.ty
            ));
        }
        notes.extend(tightened(was, now));
        let notes = notes.into_iter().map(|text| Problem::new(place, subject, text));
        self.findings.notes.extend(notes);
    }
}

/// Why a field can't have a number in stored objects; `None`: it can.
fn refusal(number: u32, was: &Line, now: &Line, recorded: &BTreeMap<u32, Line>) -> Option<String> {
    let free = recorded.keys().max().map_or(1, |highest| highest + 1);
    if was.name == now.name && was.ty.reads_as(&now.ty) {
        return None;
    }
    let had = format!("`{}` ({})", was.name, was.ty);
    Some(match (was.is_gone, was.name == now.name) {
        (true, _) => format!(
            "the number {number} was that of {had}, which is no more; objects stored then would show its values here: \
             take a number that was never used, {free} is free"
        ),
        (false, true) => format!(
            "it is {} in stored objects, which can't be read as {}: give a new field of another name the number {free}, \
             and take this one out with `reserved {number};`",
            was.ty, now.ty
        ),
        (false, false) if was.ty.reads_as(&now.ty) => format!(
            "the number {number} is that of {had} in stored objects, whose values would be shown here: take {free}, or, if \
             it is the same field under a new name, write the new name into the line {number} of {FILE} too (objects \
             that are stored as JSON lose it)"
        ),
        (false, false) => format!(
            "the number {number} is that of {had} in stored objects, which can't be read as {}: take {free}, and write \
             `reserved {number};`",
            now.ty
        ),
    })
}

/// What stored values may not be any more.
fn tightened(was: &Line, now: &Line) -> Vec<String> {
    let mut found = Vec::new();
    let (before, after) = (&was.rules, &now.rules);
    for (rule, value) in after {
        let old = before.get(rule);
        if old == Some(value) {
            continue;
        }
        let number = |text: &str| text.parse::<f64>().ok();
        let is_tighter = match (rule.as_str(), old) {
            ("default", Some(old)) => {
                found.push(format!("objects stored without it show {value} from now on, not {old}"));
                false
            }
            ("default", None) => {
                found.push(format!("objects stored without it show {value} from now on"));
                false
            }
            ("enum" | "item_enum", Some(old)) => {
                let gone: Vec<&str> = old
                    .split('|')
                    .filter(|v| !value.split('|').any(|now| now == *v))
                    .collect();
                if !gone.is_empty() {
                    found.push(format!(
                        "stored objects may say {}, which is refused from now on",
                        gone.join(", ")
                    ));
                }
                false
            }
            (_, None) => true,
            (rule, Some(old)) if rule.starts_with("min") => number(value) > number(old),
            (rule, Some(old)) if rule.starts_with("max") => number(value) < number(old),
            (_, Some(_)) => true,
        };
        if is_tighter && rule == "required" {
            found.push("stored objects may lack it, which is refused from now on".to_owned());
        } else if is_tighter {
            found.push(format!(
                "stored values may not fit {rule} {value}, and are refused from now on"
            ));
        }
    }
    if let Some(old) = before.get("default").filter(|_| !after.contains_key("default")) {
        found.push(format!("objects stored without it showed {old} until now"));
    }
    found
}
