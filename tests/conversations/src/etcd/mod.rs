//! Stored keys of etcd, read through its JSON gateway.

mod stored;

use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

pub use stored::stored;

use crate::client::{Address, Client, Connector, Sent};
use crate::fault::Fault;

const PAUSE: Duration = Duration::from_millis(50);

/// The server's etcd.
pub struct Etcd(Client);

/// Which keys are read.
pub struct Question<'a> {
    pub key: &'a str,
    /// Every key that starts so.
    pub prefix: bool,
    pub keys_only: bool,
    /// So many keys are waited for,
    pub least: usize,
    /// for so long.
    pub within: Duration,
}

impl Etcd {
    /// The etcd at a URL.
    pub fn at(address: Address) -> Result<Etcd, Fault> {
        Ok(Etcd(Client::new(address, Connector::new(None)?)))
    }

    /// The keys with what is stored at them.
    pub async fn read(&self, question: &Question<'_>) -> Result<Value, Fault> {
        let deadline = Instant::now() + question.within;
        let mut found = self.range(question).await?;
        while found.len() < question.least && Instant::now() < deadline {
            tokio::time::sleep(PAUSE).await;
            found = self.range(question).await?;
        }
        found.iter().map(|pair| row(pair, question.keys_only)).collect()
    }

    async fn range(&self, question: &Question<'_>) -> Result<Vec<Value>, Fault> {
        let key = question.key.as_bytes();
        let mut ask = json!({"key": BASE64_STANDARD.encode(key)});
        if question.prefix {
            ask["range_end"] = BASE64_STANDARD.encode(after(key)).into();
        }
        if question.keys_only {
            ask["keys_only"] = true.into();
        }
        let sent = Sent {
            method: "POST".into(),
            path: "/v3/kv/range".into(),
            headers: vec![("content-type".into(), "application/json".into())],
            body: Some(ask.to_string().into_bytes()),
        };
        let received = self.0.send(&sent, None).await?;
        let mut answer: Value = serde_json::from_slice(&received.body).map_err(Fault::transport)?;
        match answer["kvs"].take() {
            Value::Array(pairs) => Ok(pairs),
            _ => Ok(Vec::new()),
        }
    }
}

/// The first key behind those that start so.
fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}

fn row(pair: &Value, key_only: bool) -> Result<Value, Fault> {
    let decoded = |value: &Value| {
        BASE64_STANDARD
            .decode(value.as_str().unwrap_or_default())
            .map_err(Fault::transport)
    };
    let key = String::from_utf8_lossy(&decoded(&pair["key"])?).into_owned();
    if key_only {
        return Ok(json!({"key": key}));
    }
    let stored = stored(&decoded(&pair["value"])?).ok_or_else(|| Fault::unusable(format!("{key}: no envelope")))?;
    Ok(json!({"key": key, "stored": stored, "lease": pair.get("lease").is_some()}))
}
