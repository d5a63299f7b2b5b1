//! Registration of the code that belongs to kinds: strategies, defaults, checks, handlers, cells of Tables.
//!
//! Code is registered by the type of its kind, or by group and plural where there is no type. When the registry is made
//! every registration has to fit the definitions: a kind that there is, objects of the very type, a subresource that it
//! has, and nothing twice. What does not fit ends the start with the name of the kind, since rules that reach no kind
//! would be skipped without a word.

mod resource;

use std::any::type_name;
use std::marker::PhantomData;
use std::sync::Arc;

use keelson_machinery::field::ErrorList;
use keelson_machinery::object::{Gvk, Object};
use keelson_machinery::reflect::{Field, Reflect};
use keelson_machinery::scheme::{KindDesc, Scheme};
use keelson_machinery::table::{Cell, CellFunction, ConditionFunction, RowCondition, TableError};
use keelson_machinery::validation::declarative::{Place, RuleError, TypeChecks};

use super::Resource;
use super::admission::Admission;
use super::handler::Handler;
use super::immutable_fields::Kept;
use super::strategy::{AnyStrategy, MetadataChecks, Strategy};
use super::typed::{self, CodeDefaults, IsOfType, Typed};
pub(super) use resource::Described;
pub use resource::ResourceCode;

/// Code that belongs to kinds; handed in by the server that is built.
#[derive(Default)]
pub struct KindCode {
    registrations: Vec<Registration>,
    pub(super) admission: Admission,
    pub(super) checks: TypeChecks,
}

/// Code whose registration does not fit the definitions.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} of {kind}: {fault}")]
pub struct CodeError {
    /// What was registered: `strategy`, `defaults`, `subresource "log"`.
    pub what: String,
    /// For which kind, as it was named there.
    pub kind: String,
    /// What is wrong with it.
    pub fault: CodeFault,
}

/// What is wrong with a registration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeFault {
    /// No definition has this kind.
    #[error("no definition has this kind")]
    UnknownKind,
    /// The same is registered already.
    #[error("registered twice")]
    Twice,
    /// The objects of the kind are of another type than this.
    #[error("its objects are no {0}")]
    WrongType(&'static str),
    /// It belongs to the hub version, which is this.
    #[error("it is of the hub version, which is {0}")]
    NotHub(String),
    /// The definition has no such subresource.
    #[error("its definition has no such subresource")]
    UnknownSubresource,
    /// No column of the definition names such a function.
    #[error("no column of its definition has this function")]
    UnknownCell,
    /// The objects are stored, so that no code answers for them.
    #[error("its objects are stored, so that no code answers for them")]
    Stored,
    /// The objects have no such field.
    #[error("its objects have no field {0}")]
    UnknownField(&'static str),
}

/// A registry that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A column of a definition is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A registration does not fit the definitions.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// A CEL rule of a definition does not compile.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A resource has no version.
    #[error("a resource needs a version")]
    NoVersion,
}

struct Registration {
    subject: Subject,
    code: Code,
}

/// What code is about.
#[derive(Clone)]
enum Subject {
    /// The kind of a type, in the version of that type.
    Kind(Gvk),
    Resource {
        group: &'static str,
        plural: &'static str,
    },
    /// All kinds of a scheme about which nothing else is said.
    Scheme(&'static Scheme),
}

enum Code {
    Strategy {
        strategy: Arc<AnyStrategy>,
        /// `None`: it takes objects of any type.
        ty: Option<Type>,
    },
    MetadataChecks(MetadataChecks),
    Kept(Arc<[Kept]>),
    Defaults {
        fill: CodeDefaults,
        ty: Type,
    },
    /// By subresource; "" is the resource itself.
    Handler(&'static str, Arc<dyn Handler>),
    Cell {
        /// As columns name it.
        name: &'static str,
        make: CellFunction,
        ty: Type,
    },
    RowCondition {
        find: ConditionFunction,
        ty: Type,
    },
    RowReads(&'static [&'static str]),
}

#[derive(Clone, Copy)]
struct Type {
    name: &'static str,
    is: IsOfType,
}

impl Type {
    fn of<T: Object>() -> Type {
        Type {
            name: type_name::<T>(),
            is: typed::is_of::<T>,
        }
    }

    fn confirm(self, kind: &KindDesc) -> Result<(), CodeFault> {
        match (self.is)(&*kind.new_object()) {
            true => Ok(()),
            false => Err(CodeFault::WrongType(self.name)),
        }
    }
}

impl KindCode {
    /// Code of the kind whose objects are `T`s, in one of its versions.
    pub fn kind<T: Object + Default>(&mut self) -> KindEntry<'_, T> {
        self.entry(Subject::Kind(T::default().gvk().clone()))
    }

    /// Code of a kind that has no type of its own.
    pub fn named(&mut self, group: &'static str, plural: &'static str) -> KindEntry<'_, dyn Object> {
        self.entry(Subject::Resource { group, plural })
    }

    fn entry<T: ?Sized>(&mut self, subject: Subject) -> KindEntry<'_, T> {
        KindEntry {
            code: self,
            subject,
            of: PhantomData,
        }
    }

    /// Sets what the kinds of a scheme check of their metadata beside the rules that every resource has, unless they
    /// say something else themselves. Without it they check nothing more.
    pub fn usual_metadata_checks(&mut self, scheme: &'static Scheme, checks: MetadataChecks) {
        self.entry::<dyn Object>(Subject::Scheme(scheme))
            .metadata_checks(checks);
    }

    /// Sets the admission plug-ins of the server.
    pub fn admission(&mut self, admission: Admission) {
        self.admission = admission;
    }

    /// Runs `check` on each message of type `T`, in objects of whatever kind it stands: see [`TypeChecks::add`].
    pub fn check_type<T: Reflect + Field>(&mut self, check: fn(&T, Option<&T>, &Place<'_>, &mut ErrorList)) {
        self.checks.add(check);
    }

    /// Adds all that is registered with `other`. What both have ends the start of the server.
    pub fn merge(&mut self, other: KindCode) {
        self.checks.merge(other.checks);
        self.registrations.extend(other.registrations);
    }

    /// The code of one resource.
    pub(super) fn of(&self, resource: &Described<'_>) -> Result<ResourceCode, CodeError> {
        ResourceCode::of(&self.registrations, resource)
    }

    /// An error if code is registered for what is no resource of the definitions, be it served or not.
    pub(super) fn confirm_known(&self, resources: &[Arc<Resource>]) -> Result<(), CodeError> {
        let is_known = |subject: &Subject| match subject {
            Subject::Kind(gvk) => resources.iter().flat_map(|r| &r.versions).any(|kind| is(kind, gvk)),
            Subject::Resource { group, plural } => resources.iter().any(|r| r.group == *group && r.plural == *plural),
            Subject::Scheme(_) => true,
        };
        let unknown = self.registrations.iter().find(|one| !is_known(&one.subject));
        match unknown {
            None => Ok(()),
            Some(registration) => Err(registration.error(CodeFault::UnknownKind)),
        }
    }
}

fn is(kind: &KindDesc, gvk: &Gvk) -> bool {
    kind.kind == gvk.kind && kind.group == gvk.group && kind.version == gvk.version
}

/// What makes a cell of objects of one type, by the name that columns give it as their function.
pub type NamedCell<T> = (&'static str, fn(&T) -> Cell);

/// Registers the code of one kind: each method adds a part of it. `T` is the type of its objects in one version, or
/// `dyn Object` of a kind that was named.
pub struct KindEntry<'a, T: ?Sized> {
    code: &'a mut KindCode,
    subject: Subject,
    of: PhantomData<fn(&T)>,
}

impl<T: Object> KindEntry<'_, T> {
    /// The strategy of the kind; `T` has to be the type of its hub version. It is that of all resources with these
    /// objects: events have one in two groups.
    pub fn strategy(self, strategy: impl Strategy<Object = T>) -> Self {
        self.add(Code::Strategy {
            strategy: Arc::new(Typed(strategy)),
            ty: Some(Type::of::<T>()),
        })
    }

    /// Fills in what a default in the definition can't say because it depends on other fields, in objects of the
    /// version `T`. Called after the definition's defaults.
    pub fn defaults(self, fill: fn(&mut T)) -> Self {
        self.add(Code::Defaults {
            fill: typed::defaults(fill),
            ty: Type::of::<T>(),
        })
    }

    /// The cells of columns that no path describes, by the function that the definition names; `T` has to be the type
    /// of the hub version, as with the strategy. A cell sees an object without managed fields, and where
    /// [`KindEntry::row_reads`] says what is read no more than that.
    pub fn cells(self, cells: &[NamedCell<T>]) -> Self {
        cells.iter().fold(self, |entry, (name, cell)| {
            entry.add(Code::Cell {
                name,
                make: typed::cell(*cell),
                ty: Type::of::<T>(),
            })
        })
    }

    /// What clients may know of a row as a whole.
    pub fn row_condition(self, find: fn(&T) -> Option<RowCondition>) -> Self {
        self.add(Code::RowCondition {
            find: typed::row_condition(find),
            ty: Type::of::<T>(),
        })
    }

    /// All that the cells and the condition look at; see
    /// [`CellFunctions::read`](keelson_machinery::table::CellFunctions::read).
    pub fn row_reads(self, paths: &'static [&'static str]) -> Self {
        self.add(Code::RowReads(paths))
    }
}

impl<T: ?Sized> KindEntry<'_, T> {
    fn add(self, code: Code) -> Self {
        let subject = self.subject.clone();
        self.code.registrations.push(Registration { subject, code });
        self
    }

    /// As [`KindEntry::strategy`] with one that takes objects of any type.
    pub fn any_strategy(self, strategy: impl Strategy<Object = dyn Object>) -> Self {
        self.add(Code::Strategy {
            strategy: Arc::new(strategy),
            ty: None,
        })
    }

    /// What the resource checks of its metadata beside the rules that every resource has.
    pub fn metadata_checks(self, checks: MetadataChecks) -> Self {
        self.add(Code::MetadataChecks(checks))
    }

    /// The fields that an object keeps from its making on. Of the resource of this very group, unlike the strategy.
    pub fn kept(self, fields: impl Into<Arc<[Kept]>>) -> Self {
        self.add(Code::Kept(fields.into()))
    }

    /// What answers for a resource without storage.
    pub fn resource(self, handler: impl Handler + 'static) -> Self {
        self.subresource("", handler)
    }

    /// What answers for a subresource that creates or connects. One that only reads and writes its object needs
    /// none: its rules are [`Strategy::prepare_for_subresource`] and [`Strategy::validate_subresource`].
    pub fn subresource(self, name: &'static str, handler: impl Handler + 'static) -> Self {
        self.add(Code::Handler(name, Arc::new(handler)))
    }
}

impl Registration {
    fn error(&self, fault: CodeFault) -> CodeError {
        let kind = match &self.subject {
            Subject::Kind(gvk) => gvk.to_string(),
            Subject::Resource { group: "", plural } => (*plural).to_owned(),
            Subject::Resource { group, plural } => format!("{plural}.{group}"),
            Subject::Scheme(_) => "all kinds of a scheme".to_owned(),
        };
        let what = match &self.code {
            Code::Strategy { .. } => "strategy".to_owned(),
            Code::MetadataChecks(_) => "metadata checks".to_owned(),
            Code::Kept(_) => "kept fields".to_owned(),
            Code::Defaults { .. } => "defaults".to_owned(),
            Code::Handler("", _) => "handler".to_owned(),
            Code::Handler(name, _) => format!("subresource {name:?}"),
            Code::Cell { name, .. } => format!("cell {name:?}"),
            Code::RowCondition { .. } => "row condition".to_owned(),
            Code::RowReads(_) => "fields of rows".to_owned(),
        };
        CodeError { what, kind, fault }
    }
}

#[cfg(test)]
mod tests;
