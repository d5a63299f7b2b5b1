//! Messages for the tests of the codecs: one of everything that a table can hold.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::meta::v1::ObjectMeta;
use crate::reflect::intstr::IntOrString;
use crate::reflect::quantity::Quantity;
use crate::reflect::raw::RawJson;
use crate::reflect::time::{Duration, MicroTime, Time};

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(
    name = "io.example.api.v1.Widget",
    group = "example.com",
    version = "v1",
    kind = "Widget",
    object
)]
pub(crate) struct Widget {
    #[field(json = "metadata", number = 1)]
    pub(crate) metadata: ObjectMeta,
    #[field(json = "spec", number = 2, has_defaults)]
    pub(crate) spec: WidgetSpec,
    #[field(json = "status", number = 3, omit_zero)]
    pub(crate) status: WidgetStatus,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.WidgetSpec")]
pub(crate) struct WidgetSpec {
    #[field(json = "replicas", number = 3, default = "2")]
    pub(crate) replicas: Option<i32>,
    #[field(json = "name", number = 1, always)]
    pub(crate) name: String,
    #[field(json = "size", number = 2)]
    pub(crate) size: i64,
    #[field(json = "ratio", number = 4)]
    pub(crate) ratio: f64,
    #[field(json = "enabled", number = 5)]
    pub(crate) enabled: Option<bool>,
    #[field(json = "parts", number = 6, always, has_defaults)]
    pub(crate) parts: Vec<Part>,
    #[field(json = "selector", number = 7)]
    pub(crate) selector: BTreeMap<String, String>,
    #[field(json = "limits", number = 8)]
    pub(crate) limits: BTreeMap<String, Quantity>,
    #[field(json = "data", number = 9)]
    pub(crate) data: BTreeMap<String, Bytes>,
    #[field(json = "source", number = 10, inline, has_defaults)]
    pub(crate) source: Source,
    #[field(json = "port", number = 11)]
    pub(crate) port: IntOrString,
    #[field(json = "raw", number = 12)]
    pub(crate) raw: Option<RawJson>,
    #[field(json = "tags", number = 13, always)]
    pub(crate) tags: BTreeMap<String, String>,
    #[field(json = "child", number = 14, has_defaults)]
    pub(crate) child: Option<Box<WidgetSpec>>,
    #[field(json = "timeout", number = 15)]
    pub(crate) timeout: Option<Duration>,
    #[field(json = "bundle", number = 16)]
    pub(crate) bundle: Bytes,
    #[field(json = "claims", number = 17, typed)]
    pub(crate) claims: Vec<Claim>,
}

/// A kind that stands in others.
#[derive(Clone, Default, keelson_machinery::Message)]
#[message(
    name = "io.example.api.v1.Claim",
    group = "example.com",
    version = "v1",
    kind = "Claim"
)]
pub(crate) struct Claim {
    #[field(json = "name", number = 1)]
    pub(crate) name: String,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Part")]
pub(crate) struct Part {
    #[field(json = "name", number = 1, always)]
    pub(crate) name: String,
    #[field(json = "protocol", number = 2, default = "\"TCP\"")]
    pub(crate) protocol: String,
    #[field(json = "args", number = 3, default = "[\"a\", \"b\"]")]
    pub(crate) args: Vec<String>,
    #[field(json = "numbers", number = 4)]
    pub(crate) numbers: Vec<i32>,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Source")]
pub(crate) struct Source {
    #[field(json = "path", number = 1)]
    pub(crate) path: Option<String>,
    #[field(json = "local", number = 2, has_defaults)]
    pub(crate) local: Option<Box<Part>>,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.WidgetStatus")]
pub(crate) struct WidgetStatus {
    #[field(json = "ready", number = 1)]
    pub(crate) ready: bool,
    #[field(json = "seen", number = 2, omit_zero)]
    pub(crate) seen: Time,
    #[field(json = "probed", number = 3)]
    pub(crate) probed: MicroTime,
}

/// A widget with something in every field, as its JSON shows it.
pub(crate) const FULL: &str = concat!(
    r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w","creationTimestamp":"2024-01-02T03:04:05Z","#,
    r#""labels":{"a":"b"}},"spec":{"replicas":0,"name":"x\u003cy","size":-9,"ratio":1.5e-7,"#,
    r#""enabled":false,"parts":[{"name":"p","protocol":"UDP","args":["q",""],"numbers":[1,0,-1]},{"name":""}],"#,
    r#""selector":{"k":"v"},"limits":{"cpu":"100m","memory":"1Gi"},"data":{"b":"AAEC","c":""},"path":"/x","#,
    r#""local":{"name":"l"},"port":"http","raw":{"z":[1,{"y":null}]},"tags":{"t":""},"#,
    r#""child":{"name":"","parts":null,"port":0,"tags":null},"timeout":"1m30s","bundle":"AAE=","#,
    r#""claims":[{"kind":"Claim","apiVersion":"example.com/v1","name":"c"}]},"#,
    r#""status":{"ready":true,"seen":"2024-01-02T03:04:05Z","probed":"2024-01-02T03:04:05.000006Z"}}"#,
);
