//! The objects of a run: config maps whose whole content follows from one number.

use keelson_history::{Filter, Id, Key, Version, color_of};
use serde_json::{Value, json};

/// Where they are.
pub const NAMESPACE: &str = "history";
pub const KEYS: Key = 8;
pub const PATH: &str = "/api/v1/namespaces/history/configmaps";

pub fn name(key: Key) -> String {
    format!("k{key}")
}

/// Mostly small; one of eight fills buffers.
fn padding(id: Id) -> String {
    let length = match id % 8 {
        0 => 20_000 + id as usize * 7919 % 40_000,
        _ => id as usize * 31 % 2000,
    };
    id.to_string().chars().cycle().take(length).collect()
}

fn color(id: Id) -> String {
    format!("c{}", color_of(id))
}

/// An object to be written; with a revision: only in the place of that one.
pub fn object(key: Key, id: Id, revision: Option<u64>) -> Value {
    let mut object = patch(id);
    object["apiVersion"] = "v1".into();
    object["kind"] = "ConfigMap".into();
    object["metadata"]["name"] = name(key).into();
    if let Some(revision) = revision {
        object["metadata"]["resourceVersion"] = revision.to_string().into();
    }
    object
}

/// A merge patch that makes an object what a write of this number puts.
pub fn patch(id: Id) -> Value {
    json!({
        "metadata": {"labels": {"color": color(id)}},
        "data": {"id": id.to_string(), "padding": padding(id)},
    })
}

/// Reads an object; an error says what about it nobody can have written.
pub fn read(object: &Value) -> Result<(Key, Version), String> {
    let parse = || {
        let key = object["metadata"]["name"].as_str()?.strip_prefix('k')?.parse().ok()?;
        let revision = revision(object)?;
        let id = object["data"]["id"].as_str()?.parse().ok()?;
        Some((key, Version { revision, id }))
    };
    let (key, version) = parse().ok_or_else(|| format!("not one of ours: {object}"))?;
    let whole = object["data"]["padding"].as_str() == Some(&padding(version.id))
        && object["metadata"]["labels"]["color"].as_str() == Some(&color(version.id));
    match whole {
        true => Ok((key, version)),
        false => Err(format!("key {key} at {version:?} is not whole: {object}")),
    }
}

/// The resource version of an object or list.
pub fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// A filter as query parameters, each with an ampersand in front.
pub fn selectors(filter: &Filter) -> String {
    let key = filter
        .key
        .map(|key| format!("&fieldSelector=metadata.name%3D{}", name(key)));
    let color = filter.color.map(|color| format!("&labelSelector=color%3Dc{color}"));
    format!("{}{}", key.unwrap_or_default(), color.unwrap_or_default())
}
