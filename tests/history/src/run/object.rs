//! The objects of a run: their whole content follows from one number.

use keelson_history::{Filter, Id, Key, Version, color_of};
use serde_json::{Value, json};

/// Where they are.
pub const NAMESPACE: &str = "history";
/// So many config maps all clients work on.
pub const KEYS: Key = 8;

/// The kinds of objects, each of which has a lane of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Config maps.
    Map,
    /// Events, which end by themselves. None is made twice.
    Event,
    /// Pods, which are deleted by steps. None is made twice.
    Pod,
}

impl Kind {
    pub fn path(self) -> &'static str {
        match self {
            Kind::Map => "/api/v1/namespaces/history/configmaps",
            Kind::Event => "/api/v1/namespaces/history/events",
            Kind::Pod => "/api/v1/namespaces/history/pods",
        }
    }

    pub fn name(self, key: Key) -> String {
        let prefix = match self {
            Kind::Map => 'k',
            Kind::Event => 'e',
            Kind::Pod => 'p',
        };
        format!("{prefix}{key}")
    }

    /// Where one of them is.
    pub fn object(self, key: Key) -> String {
        format!("{}/{}", self.path(), self.name(key))
    }

    /// Reads an object; an error says what about it nobody can have written.
    pub fn read(self, object: &Value) -> Result<(Key, Version), String> {
        let parse = || {
            let key = object["metadata"]["name"].as_str()?.get(1..)?.parse().ok()?;
            let id = match self {
                Kind::Map => object["data"]["id"].as_str()?.parse().ok()?,
                Kind::Event => object["message"].as_str()?.parse().ok()?,
                Kind::Pod => super::pod::id(key, object)?,
            };
            let revision = revision(object)?;
            Some((key, Version { revision, id }))
        };
        let (key, version) = parse().ok_or_else(|| format!("not one of ours: {object}"))?;
        let colored = object["metadata"]["labels"]["color"].as_str() == Some(&color(version.id));
        let whole = self != Kind::Map || object["data"]["padding"].as_str() == Some(&padding(version.id));
        let named = object["metadata"]["name"].as_str() == Some(&self.name(key));
        match colored && whole && named {
            true => Ok((key, version)),
            false => Err(format!("key {key} at {version:?} is not whole: {object}")),
        }
    }
}

/// Mostly small; one of eight fills buffers.
fn padding(id: Id) -> String {
    let length = match id % 8 {
        0 => 20_000 + id as usize * 7919 % 40_000,
        _ => id as usize * 31 % 2000,
    };
    id.to_string().chars().cycle().take(length).collect()
}

/// The label of what a write of this number puts.
pub fn color(id: Id) -> String {
    format!("c{}", color_of(id))
}

/// A config map to be written; with a revision: only in the place of that one.
pub fn map(key: Key, id: Id, revision: Option<u64>) -> Value {
    let mut object = patch(id);
    object["apiVersion"] = "v1".into();
    object["kind"] = "ConfigMap".into();
    object["metadata"]["name"] = Kind::Map.name(key).into();
    if let Some(revision) = revision {
        object["metadata"]["resourceVersion"] = revision.to_string().into();
    }
    object
}

/// A merge patch that makes a config map what a write of this number puts.
pub fn patch(id: Id) -> Value {
    json!({
        "metadata": {"labels": {"color": color(id)}},
        "data": {"id": id.to_string(), "padding": padding(id)},
    })
}

/// An event to be written.
pub fn event(key: Key, id: Id) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": Kind::Event.name(key), "namespace": NAMESPACE, "labels": {"color": color(id)}},
        "involvedObject": {"kind": "ConfigMap", "namespace": NAMESPACE, "name": "k0"},
        "reason": "Written",
        "message": id.to_string(),
        "type": "Normal",
    })
}

/// The resource version of an object or list.
pub fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// A filter as query parameters, each with an ampersand in front.
pub fn selectors(kind: Kind, filter: &Filter) -> String {
    let name = filter.key.map(|key| kind.name(key));
    let key = name.map(|name| format!("&fieldSelector=metadata.name%3D{name}"));
    let color = filter.color.map(|color| format!("&labelSelector=color%3Dc{color}"));
    format!("{}{}", key.unwrap_or_default(), color.unwrap_or_default())
}
