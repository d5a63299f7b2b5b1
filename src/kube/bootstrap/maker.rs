//! Makes objects in the name of the server.

use std::time::Duration;

use futures_util::future::{LocalBoxFuture, try_join_all};
use keelson_machinery::json;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_server::registry::write::{Part, UpdateRequest};
use keelson_server::registry::{Context, Resource};
use keelson_server::server::HookContext;

/// How often the objects of a hook are tried before it fails, and the pause between.
const ATTEMPTS: usize = 30;
const PAUSE: Duration = Duration::from_secs(1);

/// What becomes of an object that is there already: its new form, or `None` if it may stay as it is.
pub type Changed = Option<Box<dyn Object>>;
/// From what is stored and what is wanted.
pub type Reconcile = fn(stored: &dyn Object, wanted: &dyn Object) -> Changed;

/// An object to be made.
pub struct Wanted {
    pub group: &'static str,
    pub plural: &'static str,
    pub object: Box<dyn Object>,
    pub reconcile: Reconcile,
}

/// An object that is there already stays as it is.
pub fn leave(_stored: &dyn Object, _wanted: &dyn Object) -> Option<Box<dyn Object>> {
    None
}

pub struct Maker<'a> {
    pub context: &'a HookContext,
    /// Who owns the fields.
    pub manager: &'static str,
}

impl Maker<'_> {
    /// Makes or reconciles all of these, side by side; tries again while the store cannot be written.
    pub async fn make_all(&self, wanted: &[Wanted]) -> Result<(), String> {
        retried(|| Box::pin(async { try_join_all(wanted.iter().map(|one| self.make(one))).await.map(drop) })).await
    }

    pub async fn make(&self, wanted: &Wanted) -> Result<(), StatusError> {
        // A server may be built without some kinds.
        let Some(resource) = self.context.registry.resource(wanted.group, wanted.plural) else {
            return Ok(());
        };
        let mut object = wanted.object.clone_object();
        resource.apply_defaults(resource.hub, &mut *object);
        let meta = object.meta();
        let (name, request) = (meta.name.clone(), self.request(resource, &meta.namespace, ""));
        let Some(stored) = resource.find(&meta.namespace, &name).await? else {
            return match resource.create(&request, object).await {
                // Another server was faster, which is as good.
                Err(error) if error.reason == "AlreadyExists" => Ok(()),
                made => made.map(drop),
            };
        };
        if (wanted.reconcile)(&*stored.object, &*object).is_none() {
            return Ok(());
        }
        self.update(resource, &request, &name, Part::Main, &|stored| {
            (wanted.reconcile)(stored, &*object)
        })
        .await
    }

    /// Writes what `change` makes of an object, if it makes something of it.
    pub async fn update(
        &self,
        resource: &Resource,
        request: &Context,
        name: &str,
        part: Part,
        change: &dyn Fn(&dyn Object) -> Changed,
    ) -> Result<(), StatusError> {
        let update = UpdateRequest {
            part,
            ..UpdateRequest::of(name)
        };
        let mut updater = |stored: Option<&dyn Object>| {
            let stored = stored.ok_or_else(|| resource.not_found(name))?;
            Ok(change(stored).unwrap_or_else(|| stored.clone_object()))
        };
        resource.update(request, &update, &mut updater).await.map(drop)
    }

    /// A request of the server to itself.
    pub fn request(&self, resource: &Resource, namespace: &str, subresource: &str) -> Context {
        let now = self.context.backend.clock.now();
        resource.own_request(self.manager, namespace, subresource, now)
    }
}

/// Does something until it works.
pub async fn retried<'a>(
    mut attempt: impl FnMut() -> LocalBoxFuture<'a, Result<(), StatusError>>,
) -> Result<(), String> {
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match attempt().await {
            Ok(()) => return Ok(()),
            Err(error) if left == 0 => return Err(error.to_string()),
            Err(error) => tracing::warn!(%error, "an object of the system could not be made; it is tried again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Objects from data of this crate: one a line, as JSON.
pub fn read<T: Object + Default>(lines: &str) -> Result<Vec<T>, String> {
    let object = |line: &str| {
        let mut object = T::default();
        match json::read(line.as_bytes(), &mut object) {
            Ok(_) => Ok(object),
            Err(error) => Err(format!("reading {line}: {error}")),
        }
    };
    lines.lines().map(object).collect()
}
