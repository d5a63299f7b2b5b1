//! Notes on a Secret on which day its token was last used, so that a controller can tell which ones nobody needs.

use keelson_machinery::object::Object;

use super::ServiceAccountTokens;
use crate::registry::write::UpdateRequest;

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The manager of the label in `managedFields`.
const MANAGER: &str = "kube-apiserver";
/// Length of a day's name: `2026-11-21`.
const DAY: usize = 10;

impl ServiceAccountTokens {
    /// A failure costs nothing but the note.
    pub(super) async fn mark_used(&self, namespace: &str, secret: &dyn Object) {
        let (Some(resource), Some((clock, _))) = (self.secrets.resource(), self.server.get()) else {
            return;
        };
        let now = clock.now();
        let today: String = now.to_string().chars().take(DAY).collect();
        if secret.meta().labels.get(LAST_USED) == Some(&today) {
            return;
        }
        let name = secret.meta().name.clone();
        let mut updater = |stored: Option<&dyn Object>| {
            let mut object = stored.ok_or_else(|| resource.not_found(&name))?.clone_object();
            object.meta_mut().labels.insert(LAST_USED.to_owned(), today.clone());
            Ok(object)
        };
        let context = resource.own_request(MANAGER, namespace, "", now);
        let updated = resource.update(&context, &UpdateRequest::of(&name), &mut updater).await;
        if let Err(error) = updated {
            tracing::warn!(namespace, name, %error, "noting the use of a secret's token failed");
        }
    }
}
