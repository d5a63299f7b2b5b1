//! Answers of the stub: what a case or an area says that webhooks and aggregated servers answer.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The answers at one path.
#[derive(Deserialize, Debug, Clone)]
#[serde(untagged)]
pub enum Answers {
    /// The first whose `when` fits the request.
    Choice(Vec<Reply>),
    Always(Box<Reply>),
}

/// One answer. An absent key leaves what is usual.
#[derive(Deserialize, Debug, Clone, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reply {
    /// Path in the request's body to regular expression.
    #[serde(default)]
    pub when: BTreeMap<String, String>,
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub content_type: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Seconds before it is sent.
    #[serde(default)]
    pub delay: Option<f64>,
    /// Method to what is different in its answers.
    #[serde(default)]
    pub methods: BTreeMap<String, Reply>,
    /// Values that are sent one a line.
    #[serde(default)]
    pub chunks: Option<Vec<Value>>,
    /// Seconds between them.
    #[serde(default)]
    pub chunk_delay: Option<f64>,
    #[serde(default)]
    pub convert: Option<Convert>,
}

/// An answer to a ConversionReview.
#[derive(Deserialize, Debug, Clone, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Convert {
    #[serde(default)]
    pub api_version: Option<Value>,
    /// Version to paths that move: from, to.
    #[serde(rename = "move", default)]
    pub moves: BTreeMap<String, Vec<(String, String)>>,
    /// Path to value.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Only so many objects are answered.
    #[serde(default)]
    pub keep: Option<usize>,
    /// Keys of the response, null: absent.
    #[serde(default)]
    pub response: Map<String, Value>,
}

/// The file `STUB` of an area: its stub listens on a port that the server's files name.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct AreaStub {
    pub port: u16,
    /// Its certificate and key; without them they are made in the copy of the area.
    #[serde(default)]
    pub certificate: Option<String>,
    #[serde(default)]
    pub key: Option<String>,
    /// Answers that are there before the first case.
    #[serde(default)]
    pub answers: BTreeMap<String, Answers>,
}

impl AreaStub {
    /// Reads the file of an area.
    pub fn read(area: &Path) -> std::io::Result<AreaStub> {
        Ok(serde_json::from_slice(&std::fs::read(area.join("STUB"))?)?)
    }
}

impl Reply {
    /// What it is for a request of this method.
    pub fn of_method(mut self, method: &str) -> Reply {
        let Some(other) = self.methods.remove(method) else {
            return self;
        };
        Reply {
            when: self.when,
            status: other.status.or(self.status),
            body: other.body.or(self.body),
            content_type: other.content_type.or(self.content_type),
            headers: if other.headers.is_empty() {
                self.headers
            } else {
                other.headers
            },
            delay: other.delay.or(self.delay),
            methods: BTreeMap::new(),
            chunks: other.chunks.or(self.chunks),
            chunk_delay: other.chunk_delay.or(self.chunk_delay),
            convert: other.convert.or(self.convert),
        }
    }
}
