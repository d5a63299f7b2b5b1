//! Strategies: the rules of a kind that no definition can say.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use keelson_access::authz::{Authorization, refused};
use keelson_access::request_info::RequestInfo;
use keelson_access::user::User;
use keelson_machinery::field::ErrorList;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;

use super::managed::Tracking;
use super::outcome::Answer;
use super::reservation::Reservation;
use super::write::Part;
use super::{Registry, Verbs};

/// Texts for `Warning` headers of an answer.
pub type Warnings = Rc<RefCell<Vec<String>>>;

/// Validation that can be done on any thread.
pub type LongValidation = Box<dyn FnOnce() -> ErrorList + Send>;

/// Where annotations of a request go that is recorded.
pub trait Annotate {
    /// Notes a text under a name; what was noted under the same name before stays.
    fn annotate(&self, name: Cow<'static, str>, text: String);
    /// Whether what was sent is recorded too.
    fn shows_requests(&self) -> bool;
}

/// What a strategy may know of the request.
#[derive(Clone)]
pub struct Context {
    /// When the request came.
    pub now: Time,
    /// Namespace of the request; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Who sent it.
    pub user: User,
    /// What the request asks for, as it was let through; of the server's own requests nothing.
    pub asked: Arc<RequestInfo>,
    /// The verbs of the server, for kinds whose rules look at other objects or write some.
    pub verbs: Option<Arc<Verbs>>,
    /// Who may do what, for kinds whose writes give rights.
    pub authorization: Authorization,
    /// Nothing is stored.
    pub dry_run: bool,
    /// What becomes of `managedFields`.
    pub tracking: Tracking,
    /// Where what is odd, but no fault, is told.
    pub warnings: Warnings,
    /// What is recorded of the request; `None`: nothing is.
    pub audit: Option<Rc<dyn Annotate>>,
}

/// A write that is about to be confirmed, with objects of the hub version.
pub struct Confirming<'a, O: ?Sized = dyn Object> {
    /// What of the object is written.
    pub part: Part<'a>,
    /// The object as it is to be.
    pub new: &'a O,
    /// `None`: the object is new.
    pub old: Option<&'a O>,
}

impl Context {
    /// The other resources of the server.
    pub fn registry(&self) -> Option<&Arc<Registry>> {
        self.verbs.as_ref().map(|verbs| &verbs.registry)
    }

    /// Tells the client something, once the request succeeds.
    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.borrow_mut().push(text.into());
    }

    /// Adds an annotation to what is recorded of the request. `text` is called only where something is.
    pub fn annotate(&self, name: impl Into<Cow<'static, str>>, text: impl FnOnce() -> String) {
        if let Some(audit) = &self.audit {
            audit.annotate(name.into(), text());
        }
    }

    /// As [`Context::annotate`], of what tells as much as the object that was sent: only where that is recorded.
    pub fn annotate_request(&self, name: impl Into<Cow<'static, str>>, text: impl FnOnce() -> String) {
        if let Some(audit) = self.audit.as_ref().filter(|audit| audit.shows_requests()) {
            audit.annotate(name.into(), text());
        }
    }

    /// Whether the sender may do this too; 403 in the words of the first decision on a request.
    pub async fn confirm(&self, info: &RequestInfo) -> Result<(), StatusError> {
        let verdict = self.authorization.decide(&self.user, info).await;
        match verdict.error {
            _ if verdict.allowed => Ok(()),
            Some(error) => Err(StatusError::internal_error(error)),
            None => Err(refused(&self.user, info, &verdict.reason)),
        }
    }
}

/// A write that something is reserved for, with objects of the hub version.
pub struct Reserving<'a, O: ?Sized = dyn Object> {
    /// What of the object is written.
    pub part: Part<'a>,
    /// What is taken may be written into it: the address that a Service gets.
    pub new: &'a mut O,
    /// `None`: the object is new.
    pub old: Option<&'a O>,
}

/// Which checks of the metadata the rules of a kind repeat beside those that every kind has: clients see a cause for
/// each time that a fault is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MetadataChecks {
    /// The metadata of a new object. Where the rules of a kind do not look at it, it is looked at when they found
    /// nothing, and its name may be any that fits into a path.
    pub create: bool,
    /// Of a change, what is told first.
    pub order: ChangeOrder,
    /// Finalizers are names with a domain, or one of the few that stand without.
    pub standard_finalizers: bool,
    /// Of a change through the object's own path.
    pub update: RepeatedChecks,
    /// Of a change of the status.
    pub status: RepeatedChecks,
    /// Of a change through another subresource.
    pub subresource: RepeatedChecks,
}

/// The order in which the faults of a change are told: those of the object as a whole, and those of what changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeOrder {
    /// What changed, in the metadata and beside it, then the whole.
    ChangeFirst,
    /// The whole, its metadata first, then what changed.
    WholeFirst,
    /// The metadata, first as a whole, and then what is beside it.
    MetadataFirst,
}

/// What is checked once more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepeatedChecks {
    /// The metadata as that of a new object.
    pub whole: bool,
    /// What changed.
    pub change: bool,
}

impl RepeatedChecks {
    /// Neither.
    pub const NONE: RepeatedChecks = RepeatedChecks {
        whole: false,
        change: false,
    };
    /// The metadata as that of a new object.
    pub const WHOLE: RepeatedChecks = RepeatedChecks {
        whole: true,
        change: false,
    };
    /// What changed.
    pub const CHANGE: RepeatedChecks = RepeatedChecks {
        whole: false,
        change: true,
    };
    /// Both.
    pub const BOTH: RepeatedChecks = RepeatedChecks {
        whole: true,
        change: true,
    };
}

impl MetadataChecks {
    /// Nothing is checked twice.
    pub const ONCE: MetadataChecks = MetadataChecks {
        create: true,
        order: ChangeOrder::ChangeFirst,
        standard_finalizers: false,
        update: RepeatedChecks::NONE,
        status: RepeatedChecks::NONE,
        subresource: RepeatedChecks::NONE,
    };
}

/// The rules of one kind, called with objects of the hub version. Every method has the behaviour that most kinds have.
pub trait Strategy: Send + Sync + 'static {
    /// The type of the hub version: [`KindEntry::strategy`] takes the strategy for the kind of that type alone.
    /// `dyn Object` where the rules look at nothing but the metadata, so that they fit any kind, or where the type is
    /// known at run time alone; see [`KindEntry::any_strategy`].
    ///
    /// [`KindEntry::strategy`]: super::KindEntry::strategy
    /// [`KindEntry::any_strategy`]: super::KindEntry::any_strategy
    type Object: Object + ?Sized;

    /// What requests wait for before they are served, of a resource that is there before others may know. `None`:
    /// nothing, as with most kinds.
    fn settled(&self) -> Option<LocalBoxFuture<'_, ()>> {
        None
    }

    /// Whether the sender may write this very object, beyond what the verb says: called before anything else is looked
    /// at, with the stored object if there is one. `None`: the verb says all, as with most kinds.
    fn authorize<'a>(
        &'a self,
        _context: &'a Context,
        _new: &'a Self::Object,
        _old: Option<&'a Self::Object>,
    ) -> Option<Answer<'a, ()>> {
        None
    }

    /// Faults that only authorizers or other objects know of, such as what the sender may not name: asked when all else
    /// was validated, and told first. `faulty`: something else was found. `None`: there are none, as with most kinds.
    fn confirm<'a>(
        &'a self,
        _context: &'a Context,
        _write: Confirming<'a, Self::Object>,
        _faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        None
    }

    /// Takes what the write needs and others must not get: addresses, ports. Called for each attempt, behind the
    /// plug-ins that mutate and before the object is prepared, so that rules and plug-ins see what it was given. What
    /// is returned is given back unless the attempt commits. `None`: nothing is to be reserved, as with most kinds.
    fn reserve<'a>(
        &'a self,
        _context: &'a Context,
        _write: Reserving<'a, Self::Object>,
    ) -> Option<Answer<'a, Box<dyn Reservation>>> {
        None
    }

    /// What others may have again when this object is gone: it is given back by [`Reservation::commit`], once the
    /// object is removed from the store, and only then. `None`: nothing, as with most kinds.
    fn frees(&self, _context: &Context, _object: &Self::Object) -> Option<Box<dyn Reservation>> {
        None
    }

    /// Fills in, or takes out, what objects that other servers have written lack or have too much of: in what is shown
    /// of them, and not in the object that a write begins with.
    fn decorate(&self, _object: &mut Self::Object) {}

    /// Before validation of a new object: resets what clients may not set. Called again with each generated name that
    /// is tried.
    fn prepare_for_create(&self, _context: &Context, _object: &mut Self::Object) {}

    /// A new object as its writer owns it, where [`Strategy::prepare_for_create`] fills in what the writer owns.
    fn as_written(&self, _object: &Self::Object) -> Option<Box<dyn Object>> {
        None
    }

    /// Whether a client may say the status of a new object; of other kinds it is cleared.
    fn keeps_new_status(&self) -> bool {
        false
    }

    /// Before validation of a changed object. `status` was already put back to the old one.
    fn prepare_for_update(&self, _context: &Context, _new: &mut Self::Object, _old: &Self::Object) {}

    /// As [`Strategy::prepare_for_update`] for writes through `/status`; everything but metadata and status was put
    /// back.
    fn prepare_for_status_update(&self, _context: &Context, _new: &mut Self::Object, _old: &Self::Object) {}

    /// As [`Strategy::prepare_for_update`] for writes through a subresource of the kind's own.
    fn prepare_for_subresource(&self, _context: &Context, _name: &str, _new: &mut Self::Object, _old: &Self::Object) {}

    /// What a client should know of a valid object that it made, or changed (`old`) through its own path.
    fn warnings(&self, _new: &Self::Object, _old: Option<&Self::Object>) -> Vec<String> {
        Vec::new()
    }

    /// Faults of an object that the definition's rules don't find: of a new one, and of one that changed (`old`) through
    /// its own path.
    fn validate(&self, _context: &Context, _new: &Self::Object, _old: Option<&Self::Object>) -> ErrorList {
        ErrorList::default()
    }

    /// The making of what validation needs, where that takes long: awaited before each validation, so that none of them
    /// makes it on its own thread. `None`: all is there, as with most kinds.
    fn prepared_validation(&self) -> Option<LocalBoxFuture<'_, ()>> {
        None
    }

    /// The validation of an object that takes long, to be done on a thread made for such work instead of
    /// [`Strategy::validate`]. `None`: it is quick.
    fn long_validation(&self, _new: &Self::Object, _old: Option<&Self::Object>) -> Option<LongValidation> {
        None
    }

    /// Names of fields, in whichever message, that kube-apiserver looks at first, in this order: what the definition
    /// finds wrong with them is told so. The others follow in the order of the definition.
    fn order_of_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// Faults of what changed through the object's own path, where [`Strategy::validate`] finds those of the
    /// object as a whole alone: [`ChangeOrder`] says which are told first.
    fn validate_change(&self, _context: &Context, _new: &Self::Object, _old: &Self::Object) -> ErrorList {
        ErrorList::default()
    }

    /// Faults of a write through a subresource of the kind's own. The rules of other updates, unless said otherwise.
    fn validate_subresource(
        &self,
        context: &Context,
        _name: &str,
        new: &Self::Object,
        old: &Self::Object,
    ) -> ErrorList {
        let mut errors = self.validate_change(context, new, old);
        errors.extend(self.validate(context, new, Some(old)));
        errors
    }

    /// Faults of a write through `/status`.
    fn validate_status_update(&self, _context: &Context, _new: &Self::Object, _old: &Self::Object) -> ErrorList {
        ErrorList::default()
    }

    /// Annotations that stand for a field of kube-apiserver's own hub version: only whole objects of a version show
    /// them, not Tables and metadata alone.
    fn versioned_annotations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether the defaults of code fill in metadata, so that it can't be had without the whole object.
    fn defaults_metadata(&self) -> bool {
        false
    }

    /// Puts into an empty object, which a bookmark is, what kube-apiserver's hub version has as plain values there:
    /// versions then show a zero where they could leave the field out.
    fn fill_bookmark(&self, _object: &mut Self::Object) {}

    /// Seconds that a deletion waits for someone to end the object's work; `None`: it does not wait.
    fn grace_seconds(&self, _object: &Self::Object, _options: &DeleteOptions) -> Option<i64> {
        None
    }

    /// Begins the deletion of an object in the way of the kind, which marks it: there are no propagation policies then.
    /// False: it is deleted as objects of most kinds are.
    fn begin_deletion(&self, _context: &Context, _object: &mut Self::Object) -> bool {
        false
    }

    /// Called on an object that a deletion marks and leaves behind, the first time.
    fn prepare_for_deletion(&self, _object: &mut Self::Object) {}

    /// Whether a deletion is under way that no other deletion changes.
    fn is_deletion_settled(&self, _object: &Self::Object) -> bool {
        false
    }

    /// Whether dependents can be orphaned or waited for, so that propagation policies put finalizers in.
    fn has_dependents(&self) -> bool {
        true
    }

    /// Why nobody deletes the object of this name through its own path; `None`: whoever may deletes it.
    fn refuses_deletion(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// What the client is told who deletes without saying how.
    fn deletion_warning(&self, _options: &DeleteOptions) -> Option<&'static str> {
        None
    }

    /// The words of a precondition of a deletion that failed, where a kind has its own: what was compared, what was
    /// asked for, what is there.
    fn failed_precondition(&self, _what: &str, _wanted: &str, _found: &str) -> Option<String> {
        None
    }

    /// Whether an object that is marked as deleted may go now, finalizers of its metadata aside.
    fn may_vanish(&self, _object: &Self::Object) -> bool {
        true
    }

    /// Paths that a write through `part` puts back whatever the writer says, beside those that every kind puts back:
    /// status for the object itself, everything but status and metadata for `/status`.
    fn reset_fields(&self, _part: Part<'_>) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Whether many clients list by a field from the first minute on, as kubelets do by `spec.nodeName`: what selectors
    /// ask of an object is then kept when it is written, so that the first such list need not read them all.
    fn is_indexed(&self) -> bool {
        false
    }

    /// How long an object lives after its last write; `None`: for ever.
    fn time_to_live(&self) -> Option<std::time::Duration> {
        None
    }

    /// The finalizer-like default of a deletion that names no propagation policy: true leaves dependents orphaned.
    fn orphans_by_default(&self) -> bool {
        false
    }
}

/// What the registry calls.
pub type AnyStrategy = dyn Strategy<Object = dyn Object>;

/// The strategy of kinds that need none of their own.
pub struct DefaultStrategy;

impl Strategy for DefaultStrategy {
    type Object = dyn Object;
}
