//! Cases: the format of a recorded conversation. `README.md` has the meaning of every key.

mod answer;
mod files;
mod fold;
mod layout;
mod step;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

pub use answer::{Answers, AreaStub, Convert, Reply};
pub use files::{Recorded, case_files};
pub use fold::{fold, unfold};
pub use layout::layout;
pub use step::{Action, Body, Check, Heading, Operator, Step, Token, Watch};

/// One recorded conversation.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    pub name: String,
    pub about: String,
    /// How many fresh namespaces the case gets.
    #[serde(default = "one")]
    pub namespaces: usize,
    #[serde(default)]
    pub namespace_labels: Option<Map<String, Value>>,
    /// Path to answer of the stub; the answers are typed when their variables are filled in.
    #[serde(default)]
    pub stub: BTreeMap<String, Value>,
    #[serde(default)]
    pub ignore_keys: Vec<String>,
    /// Never played beside another case.
    #[serde(default)]
    pub serial: bool,
    pub steps: Vec<Step>,
    #[serde(default)]
    pub cleanup: Vec<Cleanup>,
}

/// What is deleted at the end of a case, whatever happened.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Cleanup {
    pub path: String,
}

impl Case {
    /// Whether it looks into the server's etcd.
    pub fn reads_etcd(&self) -> bool {
        self.steps.iter().any(|step| step.etcd.is_some())
    }
}

fn one() -> usize {
    1
}

#[cfg(test)]
mod tests;
