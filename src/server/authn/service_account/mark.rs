//! Notes on a Secret on which day its token was last used, so that a controller can tell which ones nobody needs.

use std::sync::Weak;

use keelson_machinery::object::Object;

use super::ServiceAccountTokens;
use crate::registry::Client;

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The manager of the label in `managedFields`.
const MANAGER: &str = "kube-apiserver";
/// Length of a day's name: `2026-11-21`.
const DAY: usize = 10;

impl ServiceAccountTokens {
    /// A failure costs nothing but the note.
    pub(super) async fn mark_used(&self, namespace: &str, secret: &dyn Object) {
        let verbs = self.verbs.get().and_then(Weak::upgrade);
        let client = verbs.map(|verbs| Client::of_server(verbs, MANAGER));
        let Some(secrets) = client.and_then(|client| client.objects("", "secrets", namespace)) else {
            return;
        };
        let today: String = secrets.now().to_string().chars().take(DAY).collect();
        if secret.meta().labels.get(LAST_USED) == Some(&today) {
            return;
        }
        let name = secret.meta().name.as_str();
        let mut updater = |stored: Option<&dyn Object>| {
            let mut object = stored.ok_or_else(|| secrets.resource.not_found(name))?.clone_object();
            object.meta_mut().labels.insert(LAST_USED.to_owned(), today.clone());
            Ok(object)
        };
        if let Err(error) = secrets.update(name, &mut updater).await {
            tracing::warn!(namespace, name, %error, "noting the use of a secret's token failed");
        }
    }
}
