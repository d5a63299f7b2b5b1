//! Notes on a Secret on which day its token was last used, so that a controller can tell which ones nobody needs.

use keelson_machinery::object::Object;

use super::ServiceAccountTokens;
use crate::lister::Place;

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The manager of the label in `managedFields`.
const MANAGER: &str = "kube-apiserver";
/// Length of a day's name: `2026-11-21`.
const DAY: usize = 10;

impl ServiceAccountTokens {
    /// A failure costs nothing but the note.
    pub(super) async fn mark_used(&self, namespace: &str, secret: &dyn Object) {
        let Some((clock, _)) = self.server.get() else { return };
        let today: String = clock.now().to_string().chars().take(DAY).collect();
        if secret.meta().labels.get(LAST_USED) == Some(&today) {
            return;
        }
        let place = Place {
            namespace: namespace.into(),
            name: secret.meta().name.as_str().into(),
        };
        if let Err(error) = self.secrets.label(&place, LAST_USED, &today, MANAGER).await {
            tracing::warn!(
                namespace,
                name = &*place.name,
                %error,
                "noting the use of a secret's token failed"
            );
        }
    }
}
