//! Notes on a Secret on which day its token was last used, so that a controller can tell which ones nobody needs.

use keelson_machinery::managed::Writer;
use keelson_machinery::object::{Object, api_version};

use super::ServiceAccountTokens;
use crate::authz::Authorization;
use crate::registry::managed::{RequestWriter, Tracking};
use crate::registry::write::UpdateRequest;
use crate::registry::{Context, Resource, Warnings};
use crate::user::{GROUP_MASTERS, User};

const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// The manager of the label in `managedFields`, and the server's own identity.
const MANAGER: &str = "kube-apiserver";
const SERVER: &str = "system:apiserver";
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
        let context = context(resource, namespace, now);
        let updated = resource.update(&context, &UpdateRequest::of(&name), &mut updater).await;
        if let Err(error) = updated {
            tracing::warn!(namespace, name, %error, "noting the use of a secret's token failed");
        }
    }
}

/// A request of the server to itself.
fn context(resource: &Resource, namespace: &str, now: keelson_machinery::time::Time) -> Context {
    let kind = resource.hub;
    let writer = Writer {
        manager: MANAGER.to_owned(),
        api_version: api_version(kind.group, kind.version),
        subresource: String::new(),
        now: Some(now.truncate_to_seconds()),
    };
    Context {
        now,
        namespace: namespace.to_owned(),
        user: User {
            name: SERVER.to_owned(),
            groups: vec![GROUP_MASTERS.to_owned()],
            ..User::default()
        },
        authorization: Authorization::default(),
        dry_run: false,
        tracking: Tracking::Update(RequestWriter { kind, writer }),
        warnings: Warnings::default(),
    }
}
