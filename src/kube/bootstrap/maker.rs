//! Makes objects in the name of the server.

use std::time::Duration;

use futures_util::future::{LocalBoxFuture, try_join_all};
use keelson_api::core::v1::Namespace;
use keelson_machinery::decode::DecodeError;
use keelson_machinery::json;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::Objects;
use keelson_server::server::{HookContext, HookError};

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
    pub async fn make_all(&self, wanted: &[Wanted]) -> Result<(), HookError> {
        retried(|| Box::pin(async { try_join_all(wanted.iter().map(|one| self.make(one))).await.map(drop) })).await
    }

    pub async fn make(&self, wanted: &Wanted) -> Result<(), StatusError> {
        let mut object = wanted.object.clone_object();
        let (name, namespace) = (object.meta().name.clone(), object.meta().namespace.clone());
        // A server may be built without some kinds.
        let Some(objects) = self.objects(wanted.group, wanted.plural, &namespace) else {
            return Ok(());
        };
        let Some(stored) = objects.find(&name).await? else {
            return self.create(&objects, object, &namespace).await;
        };
        objects.resource.apply_defaults(&objects.resource.hub, &mut *object);
        if (wanted.reconcile)(&*stored.object, &*object).is_none() {
            return Ok(());
        }
        self.update(&objects, &name, &|stored| (wanted.reconcile)(stored, &*object))
            .await
    }

    /// Makes an object that is absent, and before that its namespace, which whoever makes it may not have come to yet.
    async fn create(&self, objects: &Objects, object: Box<dyn Object>, namespace: &str) -> Result<(), StatusError> {
        let made = match objects.create(object.clone_object()).await {
            Err(error) if error.code == 404 && !namespace.is_empty() => {
                self.make_namespace(namespace).await?;
                objects.create(object).await
            }
            made => made,
        };
        unless_there(made.map(drop))
    }

    async fn make_namespace(&self, name: &str) -> Result<(), StatusError> {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: name.to_owned(),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        match self.objects("", "namespaces", "") {
            Some(namespaces) => unless_there(namespaces.create(Box::new(namespace)).await.map(drop)),
            None => Ok(()),
        }
    }

    /// Writes what `change` makes of an object, if it makes something of it.
    pub async fn update(
        &self,
        objects: &Objects,
        name: &str,
        change: &dyn Fn(&dyn Object) -> Changed,
    ) -> Result<(), StatusError> {
        let mut updater = |stored: Option<&dyn Object>| {
            let stored = stored.ok_or_else(|| objects.resource.not_found(name))?;
            Ok(change(stored).unwrap_or_else(|| stored.clone_object()))
        };
        objects.update(name, &mut updater).await.map(drop)
    }

    /// Objects of a resource, as the server itself reads and writes them; `None`: there is no such resource.
    pub fn objects(&self, group: &str, plural: &str, namespace: &str) -> Option<Objects> {
        self.context.client(self.manager).objects(group, plural, namespace)
    }
}

/// Another server was faster, which is as good.
fn unless_there(made: Result<(), StatusError>) -> Result<(), StatusError> {
    there(made).map(drop)
}

/// What was made; `None`: another server was faster.
pub fn there<T>(made: Result<T, StatusError>) -> Result<Option<T>, StatusError> {
    match made {
        Err(error) if error.reason == "AlreadyExists" => Ok(None),
        made => made.map(Some),
    }
}

/// Does something until it works.
pub async fn retried<'a>(
    mut attempt: impl FnMut() -> LocalBoxFuture<'a, Result<(), StatusError>>,
) -> Result<(), HookError> {
    let mut left = ATTEMPTS;
    loop {
        left -= 1;
        match attempt().await {
            Ok(()) => return Ok(()),
            Err(error) if left == 0 => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "an object of the system could not be made; it is tried again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// A line of this crate's data that is no object.
#[derive(Clone, Debug, thiserror::Error)]
#[error("reading {line}: {error}")]
pub struct DataError {
    line: String,
    error: DecodeError,
}

impl From<DataError> for HookError {
    fn from(error: DataError) -> HookError {
        HookError::other(error)
    }
}

/// Objects from data of this crate: one a line, as JSON.
pub fn read<T: Object + Default>(lines: &str) -> Result<Vec<T>, DataError> {
    let object = |line: &str| {
        let mut object = T::default();
        match json::read(line.as_bytes(), &mut object) {
            Ok(_) => Ok(object),
            Err(error) => Err(DataError {
                line: line.to_owned(),
                error,
            }),
        }
    };
    lines.lines().map(object).collect()
}
