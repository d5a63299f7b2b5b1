//! From descriptors to the model: types resolved, defaults of options filled in, list kinds added.

use std::collections::BTreeMap;

use prost_reflect::{FieldDescriptor, FileDescriptor, Kind, MessageDescriptor};

use crate::model::{Field, FieldType, LIST_META, Message, Model, Module};
use crate::options;
use crate::parse::{Parsed, in_library};
use crate::problem::{Checked, Place, Problem};

/// Reads all files of the build and those of the library. `library`: this build is that of the library itself.
pub fn model(parsed: &Parsed, library: bool, problems: &mut Vec<Problem>) -> Model {
    let mut reader = Reader {
        parsed,
        library,
        model: Model::default(),
        problems,
    };
    let files: Vec<FileDescriptor> = parsed
        .pool
        .files()
        .filter(|f| in_library(f.name()) || parsed.files.iter().any(|n| n == f.name()))
        .collect();
    let mut declared = Vec::new();
    for file in &files {
        let options = reader.file_options(file);
        for message in file.messages() {
            reader.declare(&message, &options, &mut declared);
        }
    }
    for (id, descriptor) in declared.iter().enumerate() {
        let fields = descriptor_fields(descriptor)
            .iter()
            .filter_map(|f| reader.field(descriptor, f))
            .collect();
        if let Some(message) = reader.model.messages.get_mut(id) {
            message.fields = fields;
        }
    }
    let mut model = reader.model;
    add_lists(&mut model, problems);
    mark(&mut model);
    model
}

struct Reader<'a> {
    parsed: &'a Parsed,
    library: bool,
    model: Model,
    problems: &'a mut Vec<Problem>,
}

/// Fields in the order of the file; descriptors give them in the order of numbers.
fn descriptor_fields(message: &MessageDescriptor) -> Vec<FieldDescriptor> {
    let mut fields: Vec<FieldDescriptor> = message.fields().collect();
    fields.sort_by_key(|f| f.path().to_vec());
    fields
}

/// `core/v1/pod.proto` → `core`, `v1`.
fn module_path(file: &str) -> Vec<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    parts.into_iter().map(rust_module).collect()
}

fn rust_module(folder: &str) -> String {
    folder
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

impl Reader<'_> {
    fn problem(&mut self, place: &Place, subject: impl Into<String>, text: impl Into<String>) {
        self.problems.push(Problem::new(place, subject, text));
    }

    fn file_options(&mut self, file: &FileDescriptor) -> options::GroupVersion {
        /// Field numbers of `FileDescriptorProto`.
        const SYNTAX: i32 = 12;
        const OPTIONS: i32 = 8;
        let place = self.parsed.place(file.name(), &[SYNTAX]);
        if file.package_name().is_empty() {
            let text = "no package: write `package com.example.v1;`, the prefix of the names in OpenAPI";
            self.problem(&place, "", text);
        }
        for e in file.enums() {
            let place = self.parsed.place(file.name(), e.path());
            let text = "enums do not exist in API objects: write a string field with \
                        `(keelson.field) = {enum: [\"A\", \"B\"]}`";
            self.problem(&place, e.name(), text);
        }
        for s in file.services() {
            let place = self.parsed.place(file.name(), s.path());
            self.problem(&place, s.name(), "a service means nothing here: take it out");
        }
        let extension = options::extension(&self.parsed.pool, &file.options(), "keelson.group_version");
        let Some(extension) = extension else {
            let text = "no group and version: write `option (keelson.group_version) = {group: \"example.com\", \
                        version: \"v1\"};`";
            self.problem(&place, "", text);
            return options::GroupVersion::default();
        };
        let read = options::GroupVersion::read(&extension);
        let place = self.parsed.place(file.name(), &[OPTIONS]);
        let folders = module_path(file.name());
        if folders.len() != 2 {
            self.problem(
                &place,
                "",
                "a definition stands in a folder `<group>/<version>`: move the file there",
            );
        } else if read.version.is_empty() {
            self.problem(
                &place,
                "",
                "no version: write `version: \"v1\"` in (keelson.group_version)",
            );
        } else if !read.library && folders.last() != Some(&rust_module(&read.version)) {
            let folder = folders.last().cloned().unwrap_or_default();
            let text = format!(
                "version {:?} in folder {folder:?}: give both the same name",
                read.version
            );
            self.problem(&place, "", text);
        }
        read
    }

    fn declare(
        &mut self,
        descriptor: &MessageDescriptor,
        group_version: &options::GroupVersion,
        declared: &mut Vec<MessageDescriptor>,
    ) {
        if descriptor.is_map_entry() || self.stands_for_list(descriptor) {
            return;
        }
        let file = descriptor.parent_file();
        let place = self.parsed.place(file.name(), descriptor.path());
        let extension = |name: &str| options::extension(&self.parsed.pool, &descriptor.options(), name);
        let ty = extension("keelson.type")
            .map(|m| options::Type::read(&m))
            .unwrap_or_default();
        let kind = extension("keelson.kind").map(|m| options::Kind::read(&m));
        let full_name = descriptor.full_name().to_owned();
        let local = full_name
            .strip_prefix(descriptor.package_name())
            .unwrap_or(&full_name)
            .replace('.', "");
        let openapi = if ty.openapi.is_empty() {
            full_name.clone()
        } else {
            ty.openapi.clone()
        };
        let message = Message {
            name: local,
            package: descriptor.package_name().to_owned(),
            openapi,
            module: Module {
                path: module_path(file.name()),
                external: in_library(file.name()) && !self.library,
            },
            group_version: group_version.clone(),
            kind,
            ty,
            fields: Vec::new(),
            comment: self.parsed.comment(file.name(), descriptor.path()).to_owned(),
            place: place.clone(),
            has_defaults: false,
            has_rules: false,
            has_validations: false,
            list_of: None,
            full_name: full_name.clone(),
        };
        let mut message = message;
        if let Some(kind) = &mut message.kind {
            fill(kind, &message.name);
        }
        for e in descriptor.child_enums() {
            let text = "enums do not exist in API objects: write a string field with \
                        `(keelson.field) = {enum: [\"A\", \"B\"]}`";
            self.problem(&place, format!("{}.{}", message.name, e.name()), text);
        }
        self.model.by_name.insert(full_name, self.model.messages.len());
        self.model.messages.push(message);
        declared.push(descriptor.clone());
        for child in descriptor.child_messages() {
            self.declare(&child, group_version, declared);
        }
    }

    fn field(&mut self, message: &MessageDescriptor, descriptor: &FieldDescriptor) -> Option<Field> {
        let file = message.parent_file();
        let place = self.parsed.place(file.name(), descriptor.path());
        let subject = format!("{}.{}", message.name(), descriptor.name());
        if descriptor.containing_oneof().is_some_and(|o| !o.is_synthetic()) {
            let text = "oneof does not exist in API objects: write one `optional` field for each choice";
            self.problem(&place, subject, text);
            return None;
        }
        let ty = match self.ty(descriptor) {
            Ok(ty) => ty,
            Err(text) => {
                self.problem(&place, subject, text);
                return None;
            }
        };
        let extension = options::extension(&self.parsed.pool, &descriptor.options(), "keelson.field");
        let optional = descriptor.field_descriptor_proto().proto3_optional();
        let plain_message = !optional && matches!(ty, FieldType::Message(_));
        let read = |message| options::Field::read(&message, plain_message);
        let options = extension.map(read).unwrap_or_default();
        Some(Field {
            name: descriptor.name().to_owned(),
            json: descriptor.json_name().to_owned(),
            number: descriptor.number(),
            ty,
            optional: optional || options.optional_list,
            lazy: descriptor
                .field_descriptor_proto()
                .options
                .as_ref()
                .is_some_and(|o| o.lazy()),
            options,
            comment: self.parsed.comment(file.name(), descriptor.path()).to_owned(),
            place,
        })
    }

    fn ty(&self, descriptor: &FieldDescriptor) -> Checked<FieldType> {
        if descriptor.is_map() {
            let entry = descriptor.kind();
            let Some(entry) = entry.as_message() else {
                return Err("not a map".to_owned());
            };
            if entry.map_entry_key_field().kind() != Kind::String {
                return Err("keys of maps are strings in JSON: write `map<string, …>`".to_owned());
            }
            let value = match entry.map_entry_value_field().kind() {
                Kind::Message(words) if self.stands_for_list(&words) => self.list(&words)?,
                other => self.single(&other)?,
            };
            return Ok(FieldType::Map(Box::new(value)));
        }
        let single = self.single(&descriptor.kind())?;
        Ok(if descriptor.is_list() {
            FieldType::List(Box::new(single))
        } else {
            single
        })
    }

    /// Whether the message is only another way to write a list.
    fn stands_for_list(&self, message: &MessageDescriptor) -> bool {
        options::extension(&self.parsed.pool, &message.options(), "keelson.type")
            .is_some_and(|m| options::Type::read(&m).list)
    }

    /// The list that such a message stands for.
    fn list(&self, message: &MessageDescriptor) -> Checked<FieldType> {
        let mut fields = message.fields();
        match (fields.next(), fields.next()) {
            (Some(field), None) if field.is_list() && field.number() == 1 => {
                Ok(FieldType::List(Box::new(self.single(&field.kind())?)))
            }
            _ => Err(format!(
                "{} stands for a list, but is none: it has one field, `repeated … = 1;`",
                message.full_name()
            )),
        }
    }

    fn single(&self, kind: &Kind) -> Checked<FieldType> {
        Ok(match kind {
            Kind::Bool => FieldType::Bool,
            Kind::Int32 => FieldType::Int32,
            Kind::Int64 => FieldType::Int64,
            Kind::Double => FieldType::Double,
            Kind::String => FieldType::String,
            Kind::Bytes => FieldType::Bytes,
            Kind::Message(message) if self.stands_for_list(message) => {
                return Err(format!(
                    "{} stands for a list as the value of a map: write `map<string, {}>`, or `repeated` and the type \
                     of its elements",
                    message.full_name(),
                    message.name()
                ));
            }
            Kind::Message(message) => match self.model.by_name.get(message.full_name()) {
                Some(id) => FieldType::Message(*id),
                None => {
                    return Err(format!(
                        "{} is no message of a definition file: {FOREIGN}",
                        message.full_name()
                    ));
                }
            },
            Kind::Enum(_) => {
                return Err("an enum does not exist in API objects: write `string` with \
                            `(keelson.field) = {enum: [\"A\", \"B\"]}`"
                    .to_owned());
            }
            Kind::Float => return Err("float does not exist in API objects: write `double`".to_owned()),
            Kind::Uint32 | Kind::Sint32 | Kind::Fixed32 | Kind::Sfixed32 => {
                return Err(format!(
                    "{kind:?} does not exist in API objects: write `int32` or `int64`"
                ));
            }
            Kind::Uint64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64 => {
                return Err(format!("{kind:?} does not exist in API objects: write `int64`"));
            }
        })
    }
}

const FOREIGN: &str = "use a message of this folder or of `meta/v1/*.proto` (for times \
                       io.k8s.apimachinery.pkg.apis.meta.v1.Time)";

/// The verbs of a kind that does not name them.
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
/// The verbs of a subresource that does not name them.
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Puts in what the author may leave out.
fn fill(kind: &mut options::Kind, name: &str) {
    let texts = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    if kind.singular.is_empty() {
        kind.singular = name.to_lowercase();
    }
    if kind.list_kind.is_empty() {
        kind.list_kind = format!("{name}List");
    }
    if kind.verbs.is_empty() {
        kind.verbs = texts(&VERBS);
    }
    for subresource in &mut kind.subresources {
        if subresource.verbs.is_empty() {
            subresource.verbs = texts(&SUBRESOURCE_VERBS);
        }
        if subresource.name == "scale" && subresource.kind.is_empty() {
            subresource.kind = "autoscaling/v1/Scale".to_owned();
        }
        if subresource.connect && subresource.options.is_empty() {
            subresource.options.clone_from(&subresource.kind);
        }
    }
}

/// A list kind for every kind with a resource.
fn add_lists(model: &mut Model, problems: &mut Vec<Problem>) {
    let Some(list_meta) = model.by_name.get(LIST_META).copied() else {
        return;
    };
    let kinds: Vec<(usize, Message)> = model
        .messages
        .iter()
        .enumerate()
        .filter(|(_, m)| m.resource().is_some_and(|k| !k.no_list))
        .map(|(i, m)| (i, m.clone()))
        .collect();
    for (id, item) in kinds {
        let Some(kind) = &item.kind else { continue };
        let full_name = format!("{}.{}", item.package, kind.list_kind);
        if let Some(other) = model.named(&full_name) {
            let text = format!(
                "the list kind {} of {} is generated: take this message out, or write `no_list: true`",
                kind.list_kind, item.name
            );
            problems.push(Problem::new(&other.place, &other.name, text));
            continue;
        }
        let list = list_of(id, &item, kind, list_meta, &full_name);
        model.by_name.insert(full_name, model.messages.len());
        model.messages.push(list);
    }
}

fn list_of(id: usize, item: &Message, kind: &options::Kind, list_meta: usize, full_name: &str) -> Message {
    let field = |name: &str, number, ty, options| Field {
        name: name.to_owned(),
        json: name.to_owned(),
        number,
        ty,
        optional: false,
        lazy: false,
        options,
        comment: String::new(),
        place: item.place.clone(),
    };
    let items = options::Field {
        always: true,
        required: true,
        ..Default::default()
    };
    Message {
        name: kind.list_kind.clone(),
        full_name: full_name.to_owned(),
        openapi: match item.openapi.rsplit_once('.') {
            Some((prefix, _)) => format!("{prefix}.{}", kind.list_kind),
            None => kind.list_kind.clone(),
        },
        kind: Some(options::Kind::default()),
        ty: options::Type::default(),
        fields: vec![
            field("metadata", 1, FieldType::Message(list_meta), options::Field::default()),
            field("items", 2, FieldType::List(Box::new(FieldType::Message(id))), items),
        ],
        comment: format!("{} is a list of {}.", kind.list_kind, item.name),
        list_of: Some(id),
        ..item.clone()
    }
}

/// Says of each message whether something in or below it has defaults or rules.
fn mark(model: &mut Model) {
    let mut users: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (id, message) in model.messages.iter().enumerate() {
        for used in message.fields.iter().filter_map(|f| f.ty.message()) {
            users.entry(used).or_default().push(id);
        }
    }
    let own = |m: &Message| {
        [
            m.fields.iter().any(|f| !f.default().is_empty()),
            m.has_own_rules() || m.fields.iter().any(Field::has_own_rules),
            m.has_own_validations() || m.fields.iter().any(|f| !f.options.rules.is_empty()),
        ]
    };
    let mut queue: Vec<(usize, [bool; 3])> = model.messages.iter().map(own).enumerate().collect();
    while let Some((id, below)) = queue.pop() {
        let Some(message) = model.messages.get_mut(id) else {
            continue;
        };
        let known = [message.has_defaults, message.has_rules, message.has_validations];
        let [defaults, rules, validations] = [0, 1, 2].map(|i| known[i] || below[i]);
        if [defaults, rules, validations] == known {
            continue;
        }
        message.has_defaults = defaults;
        message.has_rules = rules;
        message.has_validations = validations;
        let marks = [defaults, rules, validations];
        queue.extend(users.get(&id).into_iter().flatten().map(|user| (*user, marks)));
    }
}
