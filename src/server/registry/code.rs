//! Registration of the code that belongs to kinds: strategies, defaults, checks, handlers, cells of Tables.
//!
//! Code is registered by the type of its kind, or by group and plural where there is no type. When the registry is made
//! every registration has to fit the definitions: a kind that there is, objects of the very type, a subresource that it
//! has, and nothing twice. What does not fit ends the start with the name of the kind, since rules that reach no kind
//! would be skipped without a word.

use std::any::type_name;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use keelson_machinery::object::{Gvk, Object};
use keelson_machinery::scheme::{KindDesc, KindRef, Scheme};
use keelson_machinery::table::{Cell, CellFunction, CellFunctions, ConditionFunction, RowCondition, TableError};

use super::Resource;
use super::admission::Admission;
use super::handler::Handler;
use super::kept::Kept;
use super::strategy::{AnyStrategy, DefaultStrategy, MetadataChecks, Strategy};
use super::typed::{self, CodeDefaults, IsOfType, Typed};

/// Code that belongs to kinds; handed in by the server that is built.
#[derive(Default)]
pub struct KindCode {
    registrations: Vec<Registration>,
    pub(super) admission: Admission,
}

/// Code whose registration does not fit the definitions.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} of {kind}: {fault}")]
pub struct CodeError {
    /// What was registered: `strategy`, `defaults`, `subresource "log"`.
    pub what: String,
    /// For which kind, as it was named there.
    pub kind: String,
    pub fault: CodeFault,
}

/// What is wrong with a registration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodeFault {
    #[error("no definition has this kind")]
    UnknownKind,
    #[error("registered twice")]
    Twice,
    #[error("its objects are no {0}")]
    WrongType(&'static str),
    #[error("it is of the hub version, which is {0}")]
    NotHub(String),
    #[error("its definition has no such subresource")]
    UnknownSubresource,
    #[error("no column of its definition has this function")]
    UnknownCell,
    #[error("its objects are stored, so that no code answers for them")]
    Stored,
    #[error("its objects have no field {0}")]
    UnknownField(&'static str),
}

/// A registry that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Code(#[from] CodeError),
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

    /// Sets what the kinds of a scheme check of their metadata beside the rules that every resource has, unless they say
    /// something else themselves. Without it they check nothing more.
    pub fn usual_metadata_checks(&mut self, scheme: &'static Scheme, checks: MetadataChecks) {
        self.entry::<dyn Object>(Subject::Scheme(scheme))
            .metadata_checks(checks);
    }

    /// Sets the admission plug-ins of the server.
    pub fn admission(&mut self, admission: Admission) {
        self.admission = admission;
    }

    /// Adds all that is registered with `other`. What both have ends the start of the server.
    pub fn merge(&mut self, other: KindCode) {
        self.registrations.extend(other.registrations);
    }

    /// The code of one resource.
    pub(super) fn of(&self, resource: &Described<'_>) -> Result<ResourceCode, CodeError> {
        let mut code = ResourceCode::default();
        for registration in &self.registrations {
            let taken = resource.is_meant(registration).and_then(|meant| {
                if meant {
                    code.take(registration, resource)
                } else {
                    Ok(())
                }
            });
            taken.map_err(|fault| registration.error(fault))?;
        }
        Ok(code)
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

    /// Fills in what a default in the definition can't say because it depends on other fields, in objects of the version
    /// `T`. Called after the definition's defaults.
    pub fn defaults(self, fill: fn(&mut T)) -> Self {
        self.add(Code::Defaults {
            fill: typed::defaults(fill),
            ty: Type::of::<T>(),
        })
    }

    /// The cells of columns that no path describes, by the function that the definition names; `T` has to be the type of
    /// the hub version, as with the strategy. A cell sees an object without managed fields, and where
    /// [`KindEntry::row_reads`] says what is read no more than that.
    pub fn cells(self, cells: &[(&'static str, fn(&T) -> Cell)]) -> Self {
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

    /// All that the cells and the condition look at; see [`CellFunctions::read`].
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

/// A resource as its definition describes it.
pub(super) struct Described<'a> {
    /// Its versions.
    pub own: &'a [KindRef],
    /// Those too that it shares with a kind of another group.
    pub all: &'a [KindRef],
    pub hub: &'a KindRef,
}

impl Code {
    /// Whether it is asked about objects of the hub version, whatever version and group they are seen in.
    fn is_of_hub(&self) -> bool {
        match self {
            Code::Strategy { .. } | Code::Cell { .. } | Code::RowCondition { .. } | Code::RowReads(_) => true,
            Code::MetadataChecks(_) | Code::Kept(_) | Code::Defaults { .. } | Code::Handler(..) => false,
        }
    }
}

impl Described<'_> {
    fn is_meant(&self, registration: &Registration) -> Result<bool, CodeFault> {
        let is_own = |gvk: &Gvk| self.own.iter().any(|kind| is(kind, gvk));
        Ok(match (&registration.subject, &registration.code) {
            (Subject::Kind(gvk), code) if code.is_of_hub() => match is(self.hub, gvk) {
                false if is_own(gvk) => return Err(CodeFault::NotHub(self.hub.gvk().to_string())),
                is_hub => is_hub,
            },
            (Subject::Kind(gvk), Code::Defaults { .. }) => self.all.iter().any(|kind| is(kind, gvk)),
            (Subject::Kind(gvk), _) => is_own(gvk),
            (Subject::Resource { group, plural }, _) => self
                .own
                .iter()
                .any(|kind| kind.group == *group && kind.plural == *plural),
            (Subject::Scheme(scheme), _) => {
                let versions = scheme.groups.iter().flat_map(|group| group.versions);
                let mut kinds = versions.flat_map(|version| version.kinds);
                kinds.any(|kind| self.own.iter().any(|own| own.is(kind)))
            }
        })
    }

    fn has_subresource(&self, name: &str) -> bool {
        let mut all = self.own.iter().flat_map(|kind| &kind.subresources);
        all.any(|subresource| subresource.name == name)
    }

    fn has_cell(&self, function: &str) -> bool {
        let mut columns = self.all.iter().flat_map(|kind| &kind.columns);
        columns.any(|column| column.function == function)
    }
}

/// The code of one resource.
#[derive(Default)]
pub(super) struct ResourceCode {
    strategy: Option<Arc<AnyStrategy>>,
    metadata_checks: Option<MetadataChecks>,
    /// Of the scheme.
    usual_checks: Option<MetadataChecks>,
    kept: Option<Arc<[Kept]>>,
    /// By [`KindDesc::id`].
    pub defaults: Vec<(u64, CodeDefaults)>,
    /// By subresource; "" is the resource itself.
    pub handlers: HashMap<&'static str, Arc<dyn Handler>>,
    pub cells: CellFunctions,
}

impl ResourceCode {
    /// The strategy; [`DefaultStrategy`] where there is none.
    pub fn strategy(&self) -> Arc<AnyStrategy> {
        self.strategy.clone().unwrap_or_else(|| Arc::new(DefaultStrategy))
    }

    /// What is checked of the metadata; nothing more than of all kinds where nothing is said.
    pub fn metadata_checks(&self) -> MetadataChecks {
        let said = self.metadata_checks.or(self.usual_checks);
        said.unwrap_or(MetadataChecks::ONCE)
    }

    /// The fields that stay.
    pub fn kept(&self) -> Arc<[Kept]> {
        self.kept.clone().unwrap_or_default()
    }

    fn take(&mut self, registration: &Registration, resource: &Described<'_>) -> Result<(), CodeFault> {
        let is_new = match &registration.code {
            Code::Strategy { strategy, ty } => {
                ty.map_or(Ok(()), |ty| ty.confirm(resource.hub))?;
                self.strategy.replace(strategy.clone()).is_none()
            }
            Code::MetadataChecks(checks) => match registration.subject {
                Subject::Scheme(_) => self.usual_checks.replace(*checks).is_none(),
                _ => self.metadata_checks.replace(*checks).is_none(),
            },
            Code::Kept(fields) => {
                let unknown = fields.iter().find(|field| !field.is_in(&resource.hub.message));
                if let Some(field) = unknown {
                    return Err(CodeFault::UnknownField(field.path));
                }
                self.kept.replace(fields.clone()).is_none()
            }
            Code::Defaults { fill, ty } => self.take_defaults(registration, resource, fill, *ty)?,
            Code::Handler("", _) if !resource.own.iter().any(|kind| kind.unstored) => return Err(CodeFault::Stored),
            Code::Handler(name, _) if !name.is_empty() && !resource.has_subresource(name) => {
                return Err(CodeFault::UnknownSubresource);
            }
            Code::Handler(name, handler) => self.handlers.insert(name, handler.clone()).is_none(),
            Code::Cell { name, make, ty } => {
                ty.confirm(resource.hub)?;
                if !resource.has_cell(name) {
                    return Err(CodeFault::UnknownCell);
                }
                self.cells.register(name, make.clone())
            }
            Code::RowCondition { find, ty } => {
                ty.confirm(resource.hub)?;
                self.cells.set_condition(find.clone())
            }
            Code::RowReads(paths) => self.cells.read(paths),
        };
        match is_new {
            true => Ok(()),
            false => Err(CodeFault::Twice),
        }
    }

    /// Whether they are the first of their version.
    fn take_defaults(
        &mut self,
        registration: &Registration,
        resource: &Described<'_>,
        fill: &CodeDefaults,
        ty: Type,
    ) -> Result<bool, CodeFault> {
        let mut is_new = true;
        for kind in resource.all {
            if matches!(&registration.subject, Subject::Kind(gvk) if is(kind, gvk)) {
                ty.confirm(kind)?;
                is_new &= self.defaults.iter().all(|(id, _)| *id != kind.id());
                self.defaults.push((kind.id(), fill.clone()));
            }
        }
        Ok(is_new)
    }
}

#[cfg(test)]
mod tests;
