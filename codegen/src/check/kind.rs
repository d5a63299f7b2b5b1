//! Kinds: names, columns, subresources, and what several kinds must agree on.

use std::collections::BTreeMap;

use super::json_path;
use crate::model::{FieldType, Message, Model, OBJECT_META};
use crate::names::{split_kind, storage_path};
use crate::options::{Column, Kind, Subresource};
use crate::problem::Problem;

/// Verbs that a kind or subresource may have.
const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
/// Types of printer columns.
const COLUMN_TYPES: [&str; 5] = ["string", "integer", "number", "boolean", "date"];
/// The kind that subresource `scale` reads and writes; it exists in every server.
const SCALE: &str = "autoscaling/v1/Scale";

pub fn check(model: &Model, message: &Message, problems: &mut Vec<Problem>) {
    let Some(kind) = &message.kind else { return };
    let mut texts = Vec::new();
    let checker = Checker { model, message, kind };
    checker.columns(&mut texts);
    if kind.plural.is_empty() {
        checker.without_resource(&mut texts);
    } else {
        checker.names(&mut texts);
        checker.subresources(&mut texts);
        checker.same_as(&mut texts);
    }
    problems.extend(
        texts
            .into_iter()
            .map(|text| Problem::new(&message.place, &message.name, text)),
    );
}

struct Checker<'a> {
    model: &'a Model,
    message: &'a Message,
    kind: &'a Kind,
}

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= 63 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

impl Checker<'_> {
    fn without_resource(&self, texts: &mut Vec<String>) {
        let k = self.kind;
        let meaningless = [
            ("short_names", !k.short_names.is_empty()),
            ("categories", !k.categories.is_empty()),
            ("subresources", !k.subresources.is_empty()),
            ("storage", k.storage),
            ("hub", k.hub),
            ("storage_path", !k.storage_path.is_empty()),
            ("selectable_fields", !k.selectable_fields.is_empty()),
            ("unstored", k.unstored),
            ("stored_as_json", k.stored_as_json),
            ("same_as", !k.same_as.is_empty()),
        ];
        for (name, _) in meaningless.into_iter().filter(|(_, set)| *set) {
            texts.push(format!(
                "`{name}` belongs to a kind with a resource: write `plural: \"…\"`, or take it out"
            ));
        }
    }

    fn names(&self, texts: &mut Vec<String>) {
        let k = self.kind;
        let gv = &self.message.group_version;
        if gv.library {
            texts.push("nothing of a library is served: take `plural` out, or `library` of the file".to_owned());
        }
        let lower = [
            ("plural", std::slice::from_ref(&k.plural)),
            ("singular", std::slice::from_ref(&k.singular)),
        ];
        for (what, names) in lower
            .into_iter()
            .chain([("short_names", &k.short_names[..]), ("categories", &k.categories)])
        {
            for name in names.iter().filter(|n| !is_label(n)) {
                texts.push(format!(
                    "{what} {name:?} cannot stand in a path: write lower-case letters, digits and `-`"
                ));
            }
        }
        if !gv.group.split('.').all(is_label) && !gv.group.is_empty() {
            texts.push(format!(
                "group {:?} is no DNS name: write one such as \"example.com\"",
                gv.group
            ));
        }
        if !is_version(&gv.version) {
            texts.push(format!(
                "version {:?} is none: write `v1`, `v1beta1` or `v2alpha3`",
                gv.version
            ));
        }
        if !self.model.metadata_is(self.message, OBJECT_META) {
            texts.push(format!(
                "a kind with a resource has metadata: write `{OBJECT_META} metadata = 1;`"
            ));
        }
        for verb in k.verbs.iter().filter(|v| !VERBS.contains(&v.as_str())) {
            texts.push(format!("unknown verb {verb:?}: write {}", VERBS.join(", ")));
        }
        if !k.conversion.is_empty() && syn::parse_str::<syn::Path>(&k.conversion).is_err() {
            texts.push(format!(
                "{:?} is no path of a Rust module: write `crate::convert::widget`",
                k.conversion
            ));
        }
    }

    fn columns(&self, texts: &mut Vec<String>) {
        for column in &self.kind.columns {
            let Column {
                name,
                ty,
                path,
                function,
                ..
            } = column;
            if name.is_empty() {
                texts.push("a column has no name: write `name: \"Size\"`".to_owned());
            }
            if !COLUMN_TYPES.contains(&ty.as_str()) {
                texts.push(format!(
                    "column {name:?} has the unknown type {ty:?}: write {}",
                    COLUMN_TYPES.join(", ")
                ));
            }
            self.described(column, texts);
            match (path.is_empty(), function.is_empty()) {
                (true, true) => {
                    texts.push(format!("column {name:?} has no cells: write `path: \".spec.size\"`"));
                }
                (false, false) => {
                    texts.push(format!("column {name:?} has a path and a function: take one out"));
                }
                (false, true) => self.cell(column, texts),
                (true, false) => {}
            }
        }
    }

    fn described(&self, column: &Column, texts: &mut Vec<String>) {
        let Column {
            name,
            description,
            describes,
            ..
        } = column;
        if describes.is_empty() {
            return;
        }
        if !description.is_empty() {
            texts.push(format!(
                "column {name:?} has `description` and `describes`: take one out"
            ));
        }
        let found = describes.rsplit_once('.').is_some_and(|(definition, field)| {
            let message = self.model.messages.iter().find(|m| m.openapi == definition);
            message.is_some_and(|m| self.model.find_field(m, field).is_some())
        });
        if !found {
            texts.push(format!(
                "column {name:?} describes {describes:?}, which is no field: write `<definition>.<JSON name>`"
            ));
        }
    }

    /// The path of a column, and whether what it leads to can stand in cells of its type.
    fn cell(&self, column: &Column, texts: &mut Vec<String>) {
        let Column { name, ty, path, .. } = column;
        let Some(found) = self.path(&format!("column {name:?}"), path, texts) else {
            return;
        };
        let fits = match ty.as_str() {
            "integer" => matches!(found, FieldType::Int32 | FieldType::Int64),
            "number" => matches!(found, FieldType::Int32 | FieldType::Int64 | FieldType::Double),
            "boolean" => matches!(found, FieldType::Bool),
            "date" => self.leaf(found).is_some_and(|leaf| leaf.name.ends_with("Time")),
            _ => true,
        };
        if !fits && !path.contains('[') {
            texts.push(format!(
                "column {name:?} has the type {ty:?}, which {path:?} is not: write {:?}",
                match found {
                    FieldType::Int32 | FieldType::Int64 => "integer",
                    FieldType::Double => "number",
                    FieldType::Bool => "boolean",
                    other if self.leaf(other).is_some_and(|leaf| leaf.name.ends_with("Time")) => "date",
                    _ => "string",
                }
            ));
        }
    }

    /// The hand-written type that stands there.
    fn leaf(&self, ty: &FieldType) -> Option<&Message> {
        match ty {
            FieldType::Message(id) => self.model.message(*id).filter(|message| message.is_leaf()),
            _ => None,
        }
    }

    /// What stands at the end of a path; `None`: the definitions don't say, or it leads nowhere, which is a mistake.
    fn path(&self, what: &str, path: &str, texts: &mut Vec<String>) -> Option<&FieldType> {
        match json_path::resolve(self.model, self.message, path) {
            Ok(found) => found,
            Err(reason) => {
                texts.push(format!(
                    "{what}: the path {path:?} leads nowhere, {reason}: write a path such as `.spec.size`"
                ));
                None
            }
        }
    }

    fn subresources(&self, texts: &mut Vec<String>) {
        let mut names: Vec<&str> = Vec::new();
        for s in &self.kind.subresources {
            if !is_label(&s.name) {
                texts.push(format!(
                    "subresource {:?} cannot stand in a path: write `name: \"status\"`",
                    s.name
                ));
            }
            if names.contains(&s.name.as_str()) {
                texts.push(format!("subresource {:?} stands twice: take one out", s.name));
            }
            names.push(&s.name);
            for verb in s.verbs.iter().filter(|v| !VERBS.contains(&v.as_str())) {
                texts.push(format!(
                    "subresource {:?} has the unknown verb {verb:?}: write {}",
                    s.name,
                    VERBS.join(", ")
                ));
            }
            if s.name == "status" && self.message.field("status").is_none() {
                texts.push("subresource \"status\" needs a field `status`: add it".to_owned());
            }
            self.subresource_kind(s, "kind", &s.kind, texts);
            if s.options != s.kind {
                self.subresource_kind(s, "options", &s.options, texts);
            }
            if s.connect && s.kind.is_empty() {
                texts.push(format!(
                    "subresource {:?} connects, but has no kind of its options: write `kind: \"group/version/Kind\"`",
                    s.name
                ));
            }
            self.scale(s, texts);
        }
    }

    fn subresource_kind(&self, s: &Subresource, option: &str, value: &str, texts: &mut Vec<String>) {
        if value.is_empty() || value == SCALE {
            return;
        }
        if find_kind(self.model, value).is_none() {
            texts.push(format!(
                "subresource {:?} has the {option} {value:?}, which is none: write group/version/Kind of a message with \
                 (keelson.kind)",
                s.name
            ));
        }
    }

    fn same_as(&self, texts: &mut Vec<String>) {
        let k = self.kind;
        if k.same_as.is_empty() {
            return;
        }
        if k.storage || k.hub {
            texts.push("`same_as` names the kind that is stored: take `storage` and `hub` out".to_owned());
        }
        let other = find_kind(self.model, &k.same_as).and_then(Message::resource);
        match other.filter(|o| o.same_as.is_empty()) {
            None => texts.push(format!(
                "`same_as` names {:?}, which has no resource of its own: write group/version/Kind of a kind that has",
                k.same_as
            )),
            Some(other) if other.cluster_scoped != k.cluster_scoped => texts.push(format!(
                "scope is not that of {:?}, whose objects these are: give both the same",
                k.same_as
            )),
            Some(_) => {}
        }
    }

    fn scale(&self, s: &Subresource, texts: &mut Vec<String>) {
        let paths = [
            ("spec_replicas_path", &s.spec_replicas_path, ".spec.replicas"),
            ("status_replicas_path", &s.status_replicas_path, ".status.replicas"),
        ];
        for (name, path, example) in paths {
            if s.name != "scale" {
                if !path.is_empty() {
                    texts.push(format!(
                        "`{name}` belongs to subresource \"scale\": take it out of {:?}",
                        s.name
                    ));
                }
            } else if path.is_empty() {
                texts.push(format!("subresource \"scale\" needs `{name}: {example:?}`"));
            } else {
                self.replicas(name, path, texts);
            }
        }
        if !s.label_selector_path.is_empty() {
            let what = "subresource \"scale\": label_selector_path";
            let found = self.path(what, &s.label_selector_path, texts);
            let is_selector =
                |found: &FieldType| matches!(found, FieldType::String | FieldType::Map(_) | FieldType::Message(_));
            if found.is_some_and(|found| !is_selector(found)) {
                texts.push(format!(
                    "{what} {:?} is no selector: write the path of a text that holds one, as `.status.selector`",
                    s.label_selector_path
                ));
            }
        }
    }

    fn replicas(&self, name: &str, path: &str, texts: &mut Vec<String>) {
        match json_path::resolve(self.model, self.message, path) {
            Ok(Some(FieldType::Int32 | FieldType::Int64) | None) => {}
            Ok(Some(_)) => {
                texts.push(format!(
                    "subresource \"scale\": {name} {path:?} is no whole number: write the path of one"
                ));
            }
            Err(reason) => {
                let text = format!(
                    "subresource \"scale\": {name} {path:?} leads nowhere, {reason}: write the path of a whole number"
                );
                texts.push(text);
            }
        }
    }
}

/// The message of a kind by `group/version/Kind`.
fn find_kind<'a>(model: &'a Model, name: &str) -> Option<&'a Message> {
    let (group, version, kind) = split_kind(name)?;
    model.messages.iter().find(|m| {
        let gv = &m.group_version;
        m.kind.is_some() && m.name == kind && gv.group == group && gv.version == version
    })
}

/// `v1`, `v1beta1`, `v2alpha3`.
fn is_version(version: &str) -> bool {
    let is_number = |n: &str| !n.is_empty() && !n.starts_with('0') && n.chars().all(|c| c.is_ascii_digit());
    let Some(rest) = version.strip_prefix('v') else {
        return false;
    };
    match rest.split_once("alpha").or_else(|| rest.split_once("beta")) {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(rest),
    }
}

/// What kinds must not share, and what versions of one kind and files of one folder must.
pub fn check_together(model: &Model, problems: &mut Vec<Problem>) {
    names(model, problems);
    versions(model, problems);
    folders(model, problems);
}

/// Kinds with a resource that this build declares.
fn resources(model: &Model) -> impl Iterator<Item = (&Message, &Kind)> {
    model
        .messages
        .iter()
        .filter(|m| !m.module.external)
        .filter_map(|m| Some((m, m.resource()?)))
}

/// Within a group and version no two kinds share a name that clients may ask for.
fn names(model: &Model, problems: &mut Vec<Problem>) {
    let mut taken: BTreeMap<(String, String, String), (String, &str)> = BTreeMap::new();
    let mut kinds: BTreeMap<(String, String, String), String> = BTreeMap::new();
    for (message, kind) in resources(model) {
        let gv = &message.group_version;
        let key = |name: &str| (gv.group.clone(), gv.version.clone(), name.to_owned());
        if let Some(other) = kinds.insert(key(&message.name), message.full_name.clone()) {
            let text = format!("{other} is the same kind of the same group and version: rename one");
            problems.push(Problem::new(&message.place, &message.name, text));
        }
        let mut own: Vec<(&str, &'static str)> = vec![(&kind.plural, "plural")];
        own.push((&kind.singular, "singular"));
        own.extend(kind.short_names.iter().map(|n| (n.as_str(), "short name")));
        for (name, what) in own {
            match taken.get(&key(name)) {
                Some((other, other_what)) if *other != message.full_name => {
                    let other_name = other.rsplit('.').next().unwrap_or_default();
                    let text = format!("{what} {name:?} is already the {other_what} of {other_name}: write another");
                    problems.push(Problem::new(&message.place, &message.name, text));
                }
                Some(_) => {}
                None => {
                    taken.insert(key(name), (message.full_name.clone(), what));
                }
            }
        }
    }
}

/// Versions of one kind live at one place in the store and at one place in paths.
fn versions(model: &Model, problems: &mut Vec<Problem>) {
    let mut first: BTreeMap<(&str, &str), (&Message, &Kind)> = BTreeMap::new();
    let mut stores: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for (message, kind) in resources(model).filter(|(_, k)| k.same_as.is_empty()) {
        let key = (message.group_version.group.as_str(), message.name.as_str());
        let (other, other_kind) = *first.entry(key).or_insert((message, kind));
        let version = &other.group_version.version;
        let mut differs = |what: &str, mine: &str, theirs: &str| {
            if mine != theirs {
                let text = format!("{what} is {mine:?} here and {theirs:?} in {version}: give both versions the same");
                problems.push(Problem::new(&message.place, &message.name, text));
            }
        };
        differs("plural", &kind.plural, &other_kind.plural);
        let scope = |k: &Kind| if k.cluster_scoped { "CLUSTER" } else { "NAMESPACED" };
        differs("scope", scope(kind), scope(other_kind));
        let path = storage_path(message);
        differs("storage_path", &path, &storage_path(other));
        match stores.get(&path) {
            Some((group, name)) if (*group, *name) != key => {
                let text = format!("storage_path {path:?} is already that of {name} of group {group:?}: write another");
                problems.push(Problem::new(&message.place, &message.name, text));
            }
            _ => {
                stores.insert(path, key);
            }
        }
    }
}

/// Files of one folder say the same of their group and version, and no two folders are one group and version.
fn folders(model: &Model, problems: &mut Vec<Problem>) {
    let mut first: BTreeMap<&[String], &Message> = BTreeMap::new();
    let mut served: BTreeMap<(&str, &str), &Message> = BTreeMap::new();
    for message in model.messages.iter().filter(|m| !m.group_version.library) {
        let gv = &message.group_version;
        let other = *first.entry(&message.module.path).or_insert(message);
        if other.group_version != *gv {
            let text = format!(
                "(keelson.group_version) is not that of {}: files of one folder say the same",
                other.place.file
            );
            problems.push(Problem::new(
                &crate::problem::Place {
                    line: 0,
                    ..message.place.clone()
                },
                "",
                text,
            ));
        }
        let other = *served.entry((&gv.group, &gv.version)).or_insert(message);
        if other.module.path != message.module.path {
            let text = format!(
                "{} has the same group and version: move the file there",
                other.place.file
            );
            problems.push(Problem::new(
                &crate::problem::Place {
                    line: 0,
                    ..message.place.clone()
                },
                "",
                text,
            ));
        }
    }
}
