//! The protobuf form of an APIResourceList. The verbs of a resource are a list in JSON, but a message of their own
//! here, which no definition can say.

use keelson_machinery::protobuf::wrap;
use prost::Message;
use serde_json::Value;

/// Scalars are optional so that they are written also when they are empty, as Kubernetes does.
#[derive(Clone, PartialEq, Message)]
struct ResourceList {
    #[prost(string, optional, tag = "1")]
    group_version: Option<String>,
    #[prost(message, repeated, tag = "2")]
    resources: Vec<Resource>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(bool, optional, tag = "2")]
    namespaced: Option<bool>,
    #[prost(string, optional, tag = "3")]
    kind: Option<String>,
    #[prost(message, optional, tag = "4")]
    verbs: Option<Verbs>,
    #[prost(string, repeated, tag = "5")]
    short_names: Vec<String>,
    #[prost(string, optional, tag = "6")]
    singular_name: Option<String>,
    #[prost(string, repeated, tag = "7")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "8")]
    group: Option<String>,
    #[prost(string, optional, tag = "9")]
    version: Option<String>,
    #[prost(string, optional, tag = "10")]
    storage_version_hash: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Verbs {
    #[prost(string, repeated, tag = "1")]
    items: Vec<String>,
}

/// Encodes the JSON form, in its envelope.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    let resources = value.get("resources").and_then(Value::as_array);
    let list = ResourceList {
        group_version: text(value, "groupVersion"),
        resources: resources.into_iter().flatten().map(resource).collect(),
    };
    wrap("v1", "APIResourceList", &list.encode_to_vec())
}

fn resource(value: &Value) -> Resource {
    Resource {
        name: text(value, "name"),
        namespaced: Some(value.get("namespaced").and_then(Value::as_bool).unwrap_or_default()),
        kind: text(value, "kind"),
        verbs: Some(Verbs {
            items: texts(value, "verbs"),
        }),
        short_names: texts(value, "shortNames"),
        singular_name: text(value, "singularName"),
        categories: texts(value, "categories"),
        group: text(value, "group"),
        version: text(value, "version"),
        storage_version_hash: text(value, "storageVersionHash"),
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key).and_then(Value::as_str);
    Some(text.unwrap_or_default().to_owned())
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let items = value.get(key).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use keelson_machinery::protobuf::decode_envelope;
    use serde_json::json;

    use super::*;

    #[test]
    fn verbs_are_a_message_and_empty_texts_are_written() {
        let value = json!({"groupVersion": "v1", "resources": [{"name": "a", "kind": "A", "verbs": ["get"]}]});
        let bytes = encode(&value);
        let raw = decode_envelope(&bytes).unwrap().raw;
        assert_eq!(
            raw,
            b"\x0a\x02v1\x12\x17\x0a\x01a\x10\x00\x1a\x01A\x22\x05\x0a\x03get\x32\x00\x42\x00\x4a\x00\x52\x00"
        );
    }
}
