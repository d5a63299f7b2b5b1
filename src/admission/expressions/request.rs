//! The variable `request`: an AdmissionRequest, read off the request when an expression looks at it.

use std::cell::OnceCell;
use std::rc::Rc;

use keelson_access::user::User;
use keelson_machinery::cel::{Entries, Map, Text, Value};
use keelson_machinery::object::Gvk;
use keelson_machinery::scheme::KindDesc;
use keelson_registry::admission::{Attributes, Operation, Options};
use serde_json::Value as Json;

use crate::options;
use crate::versions::kind_of;

/// What expressions see of a request.
pub(crate) struct RequestView<'a> {
    operation: Operation,
    /// The kind of the objects as they are shown, and the group, version and resource that they are shown as.
    kind: Gvk,
    resource: [&'a str; 3],
    /// The same of the request.
    own_kind: Gvk,
    own_resource: [&'a str; 3],
    subresource: &'a str,
    name: &'a str,
    namespace: &'a str,
    user: &'a User,
    dry_run: bool,
    options: Options<'a>,
    /// As JSON, when an expression has looked at them.
    options_shown: OnceCell<Json>,
}

impl<'a> RequestView<'a> {
    /// `kind` is that of the objects as they are shown, `target` that of their resource.
    pub fn new(attributes: &'a Attributes<'_>, kind: &Gvk, target: &'a KindDesc) -> RequestView<'a> {
        let own = attributes.kind;
        RequestView {
            operation: attributes.operation,
            kind: kind.clone(),
            resource: [&target.group, &target.version, &target.plural],
            own_kind: kind_of(own, attributes.subresource),
            own_resource: [&own.group, &own.version, &own.plural],
            subresource: attributes.subresource,
            name: attributes.requested_name(),
            namespace: attributes.requested_namespace(),
            user: attributes.user(),
            dry_run: attributes.dry_run(),
            options: attributes.options,
            options_shown: OnceCell::new(),
        }
    }

    fn options(&self) -> &Json {
        let make = || {
            let text = options::text(self.operation, self.options, self.dry_run);
            serde_json::from_slice(&text).unwrap_or_default()
        };
        self.options_shown.get_or_init(make)
    }

    /// As a value.
    pub fn value(&'a self) -> Value<'a> {
        Value::Map(Map::Borrowed(Rc::new(Request(self))))
    }
}

struct Request<'a>(&'a RequestView<'a>);

/// An object with known fields.
struct Fields<'a> {
    fields: Vec<(&'static str, Value<'a>)>,
}

impl<'a> Entries<'a> for Fields<'a> {
    fn count(&self) -> usize {
        self.fields.len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        let found = self.fields.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| value.clone())
    }

    fn keys(&self) -> Vec<Text<'a>> {
        self.fields.iter().map(|(name, _)| Text::Borrowed(name)).collect()
    }
}

fn fields<'a>(fields: Vec<(&'static str, Value<'a>)>) -> Value<'a> {
    Value::Map(Map::Borrowed(Rc::new(Fields { fields })))
}

fn text(text: &str) -> Value<'_> {
    Value::String(Text::Borrowed(text))
}

/// A text that is absent where it is empty.
fn told(value: &str) -> Option<Value<'_>> {
    (!value.is_empty()).then(|| text(value))
}

fn kind(gvk: &Gvk) -> Value<'_> {
    fields(vec![
        ("group", text(&gvk.group)),
        ("version", text(&gvk.version)),
        ("kind", text(&gvk.kind)),
    ])
}

fn resource<'a>([group, version, plural]: [&'a str; 3]) -> Value<'a> {
    fields(vec![
        ("group", text(group)),
        ("version", text(version)),
        ("resource", text(plural)),
    ])
}

fn user(user: &User) -> Value<'_> {
    let mut shown = Vec::new();
    shown.extend(told(&user.name).map(|name| ("username", name)));
    shown.extend(told(&user.uid).map(|uid| ("uid", uid)));
    let list = |texts: &'_ [String]| Value::list(texts.iter().map(|one| Value::text(one.as_str())).collect());
    if !user.groups.is_empty() {
        shown.push(("groups", list(&user.groups)));
    }
    if !user.extra.is_empty() {
        let pairs = user.extra.iter().map(|(key, values)| (text(key), list(values)));
        shown.push(("extra", Value::Map(Map::Own(Rc::new(pairs.collect())))));
    }
    fields(shown)
}

const KEYS: [&str; 12] = [
    "kind",
    "resource",
    "subResource",
    "requestKind",
    "requestResource",
    "requestSubResource",
    "name",
    "namespace",
    "operation",
    "userInfo",
    "dryRun",
    "options",
];

impl<'a> Entries<'a> for Request<'a> {
    fn count(&self) -> usize {
        self.keys().len()
    }

    fn get(&self, key: &str) -> Option<Value<'a>> {
        let view = self.0;
        Some(match key {
            "kind" => kind(&view.kind),
            "resource" => resource(view.resource),
            "requestKind" => kind(&view.own_kind),
            "requestResource" => resource(view.own_resource),
            "subResource" | "requestSubResource" => told(view.subresource)?,
            "name" => told(view.name)?,
            "namespace" => told(view.namespace)?,
            "operation" => text(view.operation.word()),
            "userInfo" => user(view.user),
            "dryRun" => Value::Bool(view.dry_run),
            "options" => Value::from(view.options()),
            _ => return None,
        })
    }

    fn keys(&self) -> Vec<Text<'a>> {
        let present = KEYS.iter().filter(|key| self.get(key).is_some());
        present.map(|key| Text::Borrowed(key)).collect()
    }
}
