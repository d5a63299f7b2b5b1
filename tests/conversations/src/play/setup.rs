//! Set-up of a case: its namespaces, and the address that the server tells.

use std::time::Duration;

use regex::bytes::Regex;
use serde_json::{Map, Value, json};

use super::Player;
use crate::client::{Received, Sent, with_usual};
use crate::fault::Fault;

impl Player {
    /// The bearer token of a user, of a variable, or the token itself.
    pub(super) fn token(&self, user: &str, variables: &crate::variables::Variables) -> Result<String, Fault> {
        let known = self.tokens.get(user).map(String::as_str);
        let itself = Some(user).filter(|user| user.matches('.').count() == 2);
        let token = known
            .filter(|token| !token.is_empty())
            .or_else(|| variables.get(user))
            .or(itself);
        token
            .map(str::to_owned)
            .ok_or_else(|| Fault::unusable(format!("no token for user {user:?}")))
    }

    /// A request of the admin.
    pub(super) async fn admin(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Received, Fault> {
        let token = self.tokens.get("admin").map(String::as_str).unwrap_or_default();
        let mut usual = super::request::usual_headers();
        usual.push(("Authorization", format!("Bearer {token}")));
        if body.is_some() {
            usual.push(("Content-Type", "application/json".into()));
        }
        let sent = Sent {
            method: method.into(),
            path: path.into(),
            headers: with_usual(&usual, Vec::new()),
            body: body.map(|body| body.to_string().into_bytes()),
        };
        self.client.send(&sent, None).await
    }

    pub(super) async fn ask_advertised(&self) -> Result<String, Fault> {
        let answer = self.admin("GET", "/api", None).await?;
        let address = Regex::new(r#""serverAddress": ?"([^"]+)""#).map_err(Fault::unusable)?;
        let found = address.captures(&answer.body).and_then(|found| found.get(1));
        Ok(found.map_or_else(String::new, |found| {
            String::from_utf8_lossy(found.as_bytes()).into_owned()
        }))
    }

    /// A fresh namespace with its default service account, which pods need where no controller makes one.
    pub(super) async fn make_namespace(&self, name: &str, labels: Option<&Map<String, Value>>) -> Result<(), Fault> {
        let mut metadata = json!({"name": name});
        if let Some(labels) = labels {
            metadata["labels"] = labels.clone().into();
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        self.make("/api/v1/namespaces", &namespace).await?;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        self.make(&format!("/api/v1/namespaces/{name}/serviceaccounts"), &account)
            .await
    }

    async fn make(&self, path: &str, object: &Value) -> Result<(), Fault> {
        let answer = self.admin("POST", path, Some(object)).await.map_err(Fault::unusable)?;
        match answer.status {
            201 | 409 => Ok(()),
            status => {
                let text: String = String::from_utf8_lossy(&answer.body).chars().take(200).collect();
                Err(Fault::unusable(format!("setup: POST {path}: {status} {text}")))
            }
        }
    }

    /// Deletes what is at a path; whether it is there does not matter.
    pub(super) async fn delete(&self, path: &str) {
        let _ = self.admin("DELETE", path, None).await;
    }
}

/// Seconds as a time; 0 where they are none.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
