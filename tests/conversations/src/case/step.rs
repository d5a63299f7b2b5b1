//! Steps of a case: what is sent, and how the answer is compared.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One step. Which of its keys are set decides what it does ([`Step::action`]).
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Its name in reports.
    #[serde(default)]
    pub id: Option<String>,

    // What is sent.
    #[serde(rename = "as", default = "admin")]
    pub user: String,
    #[serde(default = "get")]
    pub method: String,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, Heading>,
    #[serde(default, deserialize_with = "present")]
    pub body: Option<Value>,
    #[serde(default)]
    pub body_text: Option<String>,
    #[serde(default)]
    pub body_base64: Option<String>,
    #[serde(default)]
    pub body_fill: Option<(String, String, usize, String)>,
    #[serde(default)]
    pub client_cert: Option<String>,
    #[serde(default)]
    pub until: Option<Until>,
    /// Seconds that the step may wait.
    #[serde(default)]
    pub within: Option<f64>,
    #[serde(default)]
    pub watch: Option<Watch>,
    #[serde(default)]
    pub capture: BTreeMap<String, String>,

    // What is done instead of sending a request.
    #[serde(default)]
    pub sleep: Option<f64>,
    #[serde(default)]
    pub jwt: Option<Token>,
    #[serde(default)]
    pub collect: Option<String>,
    #[serde(default)]
    pub events: Option<usize>,
    /// Seconds that `collect` waits.
    #[serde(default)]
    pub timeout: Option<f64>,
    #[serde(default)]
    pub audit: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub etcd: Option<String>,
    #[serde(default)]
    pub prefix: bool,
    #[serde(default)]
    pub keys_only: bool,
    #[serde(default)]
    pub min: Option<usize>,
    #[serde(default)]
    pub stub_requests: Option<String>,
    #[serde(rename = "match", default)]
    pub fits: BTreeMap<String, String>,
    #[serde(default)]
    pub keep_headers: Vec<String>,

    // How the answer is compared.
    #[serde(default)]
    pub ignore: Vec<String>,
    #[serde(default)]
    pub ignore_keys: Vec<String>,
    #[serde(default)]
    pub only: Vec<String>,
    #[serde(default)]
    pub json: bool,
    #[serde(default)]
    pub contains: Vec<String>,
    #[serde(default)]
    pub checks: BTreeMap<String, Check>,
    /// Path of a list to what its elements are sorted by, in the order of sorting.
    #[serde(default, deserialize_with = "in_order")]
    pub sort_by: Vec<(String, Keys)>,
    #[serde(default)]
    pub expect_headers: Vec<String>,
    #[serde(default)]
    pub full_content_type: bool,
    #[serde(default)]
    pub body_prefix: Option<usize>,
    #[serde(default)]
    pub compare: Comparison,
    #[serde(default)]
    pub expect: Option<Value>,
    /// A note of whoever made the case; nothing depends on it.
    #[serde(default)]
    pub finished: bool,
}

/// What a step does.
pub enum Action<'a> {
    Sleep(f64),
    Sign(&'a Token),
    /// Reads a watch that an earlier step has opened.
    Collect(&'a str),
    /// Reads the audit log: path in an event to regular expression.
    Audit(&'a BTreeMap<String, String>),
    /// Reads a key of etcd, or those that start so.
    Etcd(&'a str),
    /// Reads what the stub received at a path.
    StubRequests(&'a str),
    Watch(&'a str, &'a Watch),
    /// Sends a request to a path.
    Send(&'a str),
}

/// A request's body.
pub enum Body<'a> {
    Json(&'a Value),
    Text(&'a str),
    Base64(&'a str),
    /// Before, unit, count, after.
    Fill(&'a str, &'a str, usize, &'a str),
}

/// A header of a request.
#[derive(Deserialize, Debug, Clone)]
#[serde(untagged)]
pub enum Heading {
    /// Not sent, though one of that name usually is.
    Absent(()),
    One(String),
    /// Sent once for each.
    Many(Vec<String>),
}

/// What an answer must be like before the step goes on with it.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Until {
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub equals: Option<Value>,
    #[serde(default)]
    pub present: bool,
    #[serde(default)]
    pub absent: bool,
}

/// How a watch is read.
#[derive(Deserialize, Debug, Clone)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Watch {
    #[serde(default)]
    pub events: Option<usize>,
    /// Seconds of silence after which it is over.
    #[serde(default = "eight")]
    pub timeout: f64,
    #[serde(default)]
    pub background: bool,
    #[serde(default)]
    pub no_bookmarks: bool,
}

/// A comparison of one value of the answer, before anything is normalised.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub path: String,
    #[serde(default)]
    pub op: Operator,
    #[serde(default)]
    pub value: Value,
}

#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    #[default]
    #[serde(rename = "==")]
    Equal,
    #[serde(rename = "!=")]
    Differs,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = ">=")]
    AtLeast,
    #[serde(rename = "present")]
    Present,
}

/// A token that a step signs.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The file of the private key, beside the case.
    pub key: String,
    pub claims: Map<String, Value>,
    #[serde(default)]
    pub header: Map<String, Value>,
    /// The variable that keeps it.
    #[serde(rename = "as")]
    pub variable: String,
}

/// One key, or several in turn.
#[derive(Deserialize, Debug)]
#[serde(untagged)]
pub enum Keys {
    One(String),
    Several(Vec<String>),
}

impl Keys {
    pub fn as_slice(&self) -> &[String] {
        match self {
            Keys::One(key) => std::slice::from_ref(key),
            Keys::Several(keys) => keys,
        }
    }
}

#[derive(Deserialize, Debug, Default, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub enum Comparison {
    #[default]
    All,
    None,
}

impl Step {
    /// What it does; an error where its keys don't say.
    pub fn action(&self) -> Result<Action<'_>, String> {
        let special = [
            self.sleep.map(Action::Sleep),
            self.jwt.as_ref().map(Action::Sign),
            self.collect.as_deref().map(Action::Collect),
            self.audit.as_ref().map(Action::Audit),
            self.etcd.as_deref().map(Action::Etcd),
            self.stub_requests.as_deref().map(Action::StubRequests),
        ];
        let mut actions = special.into_iter().flatten();
        match (actions.next(), &self.path, &self.watch) {
            (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
                Err("a step sends a request or does something else".into())
            }
            (Some(_), ..) if actions.next().is_some() => Err("a step does one thing".into()),
            (Some(action), ..) => Ok(action),
            (None, Some(path), Some(watch)) => Ok(Action::Watch(path, watch)),
            (None, Some(path), None) => Ok(Action::Send(path)),
            (None, None, _) => Err("a step does nothing".into()),
        }
    }

    /// Whether its answer does not matter.
    pub fn is_not_compared(&self) -> bool {
        self.compare == Comparison::None
    }

    /// The body that it sends.
    pub fn body(&self) -> Option<Body<'_>> {
        let fill = self.body_fill.as_ref();
        let json = self.body.as_ref().map(Body::Json);
        json.or(self.body_text.as_deref().map(Body::Text))
            .or(fill.map(|(before, unit, count, after)| Body::Fill(before, unit, *count, after)))
            .or(self.body_base64.as_deref().map(Body::Base64))
    }
}

/// A key that is there counts, whatever its value: null too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The pairs of an object as they stand.
fn in_order<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Keys)>, D::Error> {
    let pairs = Map::deserialize(deserializer)?.into_iter();
    let typed = pairs.map(|(path, keys)| Ok((path, serde_json::from_value(keys)?)));
    typed
        .collect::<Result<_, serde_json::Error>>()
        .map_err(serde::de::Error::custom)
}

fn admin() -> String {
    "admin".into()
}

fn get() -> String {
    "GET".into()
}

fn eight() -> f64 {
    8.0
}
