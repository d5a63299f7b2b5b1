//! The in-process client: how the server's own code reads and writes objects. It has a user of its own and goes through
//! the verbs, so admission sees it as it sees any client; there is no HTTP between.

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keelson_access::authz::Authorization;
use keelson_access::user::{GROUP_MASTERS, User};
use keelson_machinery::apply::{DocumentError, read_document};
use keelson_machinery::decode::DecodeError;
use keelson_machinery::managedfields::Writer;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::{Object, api_version};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;

use super::apply::Applying;
use super::delete::Deleted;
use super::managed::{RequestWriter, Tracking};
use super::write::{Part, UpdateRequest, Updater};
use super::{Context, Lister, NamespacedName, Registry, Resource, Stored, Target, Verbs, Warnings};

/// The server's own identity.
const SERVER: &str = "system:apiserver";

/// Reads and writes as one user.
#[derive(Clone)]
pub struct Client {
    verbs: Arc<Verbs>,
    user: User,
    /// Who owns what it writes; `None`: nobody does, and owners stay who they are.
    manager: Option<String>,
    dry_run: bool,
    nested: bool,
}

impl Client {
    /// A client that sends as this user. `manager` is who owns what it writes, in `managedFields`.
    pub fn new(verbs: Arc<Verbs>, user: User, manager: &str) -> Client {
        Client {
            verbs,
            user,
            manager: Some(manager.to_owned()),
            dry_run: false,
            nested: false,
        }
    }

    /// The server itself, which may do everything.
    pub fn of_server(verbs: Arc<Verbs>, manager: &str) -> Client {
        let user = User {
            name: SERVER.to_owned(),
            groups: vec![GROUP_MASTERS.to_owned()],
            ..User::default()
        };
        Client::new(verbs, user, manager)
    }

    /// The same, but nobody owns what it writes.
    #[must_use]
    pub fn untracked(self) -> Client {
        Client { manager: None, ..self }
    }

    /// The same; with true, nothing is stored.
    #[must_use]
    pub fn dry_run(self, dry_run: bool) -> Client {
        Client { dry_run, ..self }
    }

    /// The same for deletions that follow from another one, which no plug-in of kube-apiserver sees; see
    /// [`Attributes::nested`](super::admission::Attributes::nested).
    #[must_use]
    pub fn nested(self) -> Client {
        Client { nested: true, ..self }
    }

    /// The time that a write would carry now.
    pub fn now(&self) -> keelson_machinery::time::Time {
        self.verbs.backend.clock.now()
    }

    /// The resources that it can read and write.
    pub fn registry(&self) -> &Registry {
        &self.verbs.registry
    }

    /// The objects of a resource in one namespace ("": those of a cluster-scoped kind, or for [`Objects::all`] of all
    /// namespaces). `None`: the server has no such resource.
    pub fn objects(&self, group: &str, plural: &str, namespace: &str) -> Option<Objects> {
        Some(Objects {
            resource: self.verbs.registry.resource(group, plural)?,
            client: self.clone(),
            namespace: namespace.to_owned(),
            subresource: None,
        })
    }

    /// The objects of the kind that `T` is, which has to be the hub version.
    ///
    /// # Errors
    /// The server has no resource of this kind.
    pub fn of<T: Object + Default + Clone>(&self, namespace: &str) -> Result<TypedObjects<T>, StatusError> {
        let gvk = T::default().gvk().clone();
        let resource = self.verbs.registry.resource_of(&gvk.group, &gvk.version, &gvk.kind);
        let resource = resource.ok_or_else(|| StatusError::internal_error(format!("{gvk} is no hub version here")))?;
        Ok(TypedObjects {
            objects: Objects {
                resource,
                client: self.clone(),
                namespace: namespace.to_owned(),
                subresource: None,
            },
            kind: PhantomData,
        })
    }
}

/// The objects of one resource as a client sees them: of the hub version.
#[derive(Clone)]
pub struct Objects {
    client: Client,
    /// Whose objects.
    pub resource: Arc<Resource>,
    namespace: String,
    /// Its place among those of the hub version.
    subresource: Option<usize>,
}

impl Objects {
    /// The same through a subresource, which [`Objects::update`] and [`Objects::apply`] then write.
    ///
    /// # Errors
    /// The kind has no such subresource.
    pub fn subresource(self, name: &str) -> Result<Objects, StatusError> {
        let mut all = self.resource.hub.subresources.iter();
        let found = all.position(|subresource| subresource.name == name);
        match found {
            Some(_) => Ok(Objects {
                subresource: found,
                ..self
            }),
            None => Err(StatusError::no_such_resource()),
        }
    }

    /// One object; 404 if it is absent.
    pub async fn get(&self, name: &str) -> Result<Stored, StatusError> {
        self.resource.get(&self.namespace, name).await
    }

    /// One object; `None`: there is none.
    pub async fn find(&self, name: &str) -> Result<Option<Stored>, StatusError> {
        self.resource.find(&self.namespace, name).await
    }

    /// All objects.
    pub async fn all(&self) -> Result<Vec<Box<dyn Object>>, StatusError> {
        self.resource.all(&self.namespace).await
    }

    /// The names of all objects. None of them is read.
    pub async fn names(&self) -> Result<Vec<NamespacedName>, StatusError> {
        Lister::new(self.resource.clone()).names(&self.namespace).await
    }

    /// Makes an object; the answer is as it is stored. Defaults are applied before.
    pub async fn create(&self, mut object: Box<dyn Object>) -> Result<Box<dyn Object>, StatusError> {
        self.resource.apply_defaults(&self.resource.hub, &mut *object);
        let context = self.context();
        self.verbs().create(&self.target("", &context), object).await
    }

    /// Writes what the updater makes of an object that is there, through its own path or a subresource.
    pub async fn update(&self, name: &str, updater: &mut dyn Updater) -> Result<Box<dyn Object>, StatusError> {
        self.update_part(name, self.part(), updater).await
    }

    /// As [`Objects::update`], but the rules for clients don't hold.
    pub async fn update_internal(&self, name: &str, updater: &mut dyn Updater) -> Result<Box<dyn Object>, StatusError> {
        self.update_part(name, Part::Internal, updater).await
    }

    async fn update_part(
        &self,
        name: &str,
        part: Part<'_>,
        updater: &mut dyn Updater,
    ) -> Result<Box<dyn Object>, StatusError> {
        let context = self.context();
        let target = self.target(name, &context);
        let updated = self.verbs().update(&target, &UpdateRequest::of(part), updater).await?;
        Ok(updated.object)
    }

    /// Applies a JSON document of the hub version to an object that is there, over the conflicts with others.
    pub async fn apply(&self, name: &str, document: &serde_json::Value) -> Result<Box<dyn Object>, StatusError> {
        let text = document.to_string().into_bytes();
        let mut applied = self.resource.hub.new_object();
        let document = read_document(&text, applied.as_reflect_mut()).map_err(|error| match error {
            DocumentError::Duplicate => StatusError::internal_error("a key stands twice in an applied document"),
            DocumentError::Schema(why) => StatusError::internal_error(why),
            DocumentError::TooLarge => StatusError::entity_too_large(DecodeError::TooLarge),
        })?;
        let writer = self.writer(self.client.manager.as_deref().unwrap_or_default());
        let context = Context {
            tracking: Tracking::Done,
            ..self.context()
        };
        let applying = Arc::new(Applying {
            ignored: Applying::ignored(&self.resource, self.part()),
            resource: self.resource.clone(),
            kind: writer.kind,
            writer: writer.writer,
            force: true,
            text,
            document,
            applied,
            refused: None,
            made: AtomicBool::new(false),
        });
        let request = UpdateRequest {
            uid_is_precondition: false,
            ..UpdateRequest::of(self.part())
        };
        let target = self.target(name, &context);
        Ok(self.verbs().apply(&target, &request, &applying).await?.object)
    }

    /// Deletes an object, or begins to.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deleted, StatusError> {
        let context = self.context();
        let target = self
            .target(name, &context)
            .options(super::admission::Options::Delete(options));
        self.verbs().delete(&target, options).await
    }

    /// The time that a write would carry now.
    pub fn now(&self) -> keelson_machinery::time::Time {
        self.client.now()
    }

    fn verbs(&self) -> &Verbs {
        &self.client.verbs
    }

    fn target<'a>(&'a self, name: &'a str, context: &'a Context) -> Target<'a> {
        Target {
            nested: self.client.nested,
            ..Target::own(&self.resource, name, context).subresource(self.described())
        }
    }

    fn described(&self) -> Option<&SubresourceDesc> {
        self.subresource
            .and_then(|place| self.resource.hub.subresources.get(place))
    }

    fn part(&self) -> Part<'_> {
        Part::of(self.described())
    }

    fn writer(&self, manager: &str) -> RequestWriter {
        let kind = &self.resource.hub;
        RequestWriter {
            kind: kind.clone(),
            writer: Writer {
                manager: manager.to_owned(),
                api_version: api_version(&kind.group, &kind.version),
                subresource: self.described().map_or("", |subresource| &subresource.name).to_owned(),
                now: Some(self.now().truncate_to_seconds()),
            },
            written_empty: Rc::default(),
        }
    }

    fn context(&self) -> Context {
        let manager = self.client.manager.as_deref();
        Context {
            now: self.now(),
            namespace: self.namespace.clone(),
            user: self.client.user.clone(),
            asked: Arc::default(),
            verbs: Some(self.client.verbs.clone()),
            authorization: Authorization::default(),
            dry_run: self.client.dry_run,
            tracking: manager.map_or(Tracking::Keep, |manager| Tracking::Update(self.writer(manager))),
            warnings: Warnings::default(),
            audit: None,
        }
    }
}

/// The objects of one resource as values of their type.
#[derive(Clone)]
pub struct TypedObjects<T> {
    /// The same without the type.
    pub objects: Objects,
    kind: PhantomData<T>,
}

impl<T: Object + Reflect + Clone> TypedObjects<T> {
    /// The same through a subresource, which [`TypedObjects::update`] then writes.
    ///
    /// # Errors
    /// The kind has no such subresource.
    pub fn subresource(self, name: &str) -> Result<TypedObjects<T>, StatusError> {
        Ok(TypedObjects {
            objects: self.objects.subresource(name)?,
            ..self
        })
    }

    /// One object; `None`: there is none.
    pub async fn find(&self, name: &str) -> Result<Option<T>, StatusError> {
        let found = self.objects.find(name).await?;
        found.map(|stored| typed(&*stored.object)).transpose()
    }

    /// All objects.
    pub async fn all(&self) -> Result<Vec<T>, StatusError> {
        self.objects
            .all()
            .await?
            .iter()
            .map(|object| typed(&**object))
            .collect()
    }

    /// Makes an object.
    pub async fn create(&self, object: T) -> Result<T, StatusError> {
        typed(&*self.objects.create(Box::new(object)).await?)
    }

    /// Changes an object that is there. `change` is called for each attempt, with what is there by then.
    pub async fn update(&self, name: &str, mut change: impl FnMut(&mut T)) -> Result<T, StatusError> {
        let mut updater = |current: Option<&dyn Object>| {
            let current = current.ok_or_else(|| self.objects.resource.not_found(name))?;
            let mut new: T = typed(current)?;
            change(&mut new);
            Ok(Box::new(new) as Box<dyn Object>)
        };
        typed(&*self.objects.update(name, &mut updater).await?)
    }

    /// Deletes an object, or begins to.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<(), StatusError> {
        self.objects.delete(name, options).await.map(drop)
    }
}

pub(super) fn typed<T: Reflect + Clone>(object: &dyn Object) -> Result<T, StatusError> {
    let gvk = object.gvk();
    let found = object.downcast_ref::<T>().cloned();
    found.ok_or_else(|| StatusError::internal_error(format!("a {gvk} is of another type")))
}
