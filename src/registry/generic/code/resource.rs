//! The code of one resource: what of all registrations is meant for it, and whether it fits.

use std::collections::HashMap;
use std::sync::Arc;

use keelson_machinery::object::{Gvk, Object};
use keelson_machinery::scheme::KindRef;
use keelson_machinery::table::CellFunctions;

use super::{Code, CodeError, CodeFault, Registration, Subject, Type, is};
use crate::generic::handler::Handler;
use crate::generic::immutable_fields::Kept;
use crate::generic::strategy::{AnyStrategy, DefaultStrategy, MetadataChecks, Strategy};
use crate::generic::typed::CodeDefaults;

/// A resource as its definition describes it.
pub(in crate::generic) struct Described<'a> {
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
pub struct ResourceCode {
    strategy: Option<Arc<AnyStrategy>>,
    metadata_checks: Option<MetadataChecks>,
    /// Of the scheme.
    usual_checks: Option<MetadataChecks>,
    kept: Option<Arc<[Kept]>>,
    /// By [`KindDesc::id`](keelson_machinery::scheme::KindDesc::id).
    pub(in crate::generic) defaults: Vec<(u64, CodeDefaults)>,
    /// By subresource; "" is the resource itself.
    pub(in crate::generic) handlers: HashMap<&'static str, Arc<dyn Handler>>,
    pub(in crate::generic) cells: CellFunctions,
}

impl ResourceCode {
    /// With this strategy.
    #[must_use]
    pub fn with_strategy(mut self, strategy: impl Strategy<Object = dyn Object>) -> ResourceCode {
        self.strategy = Some(Arc::new(strategy));
        self
    }

    /// With this strategy, which others have too.
    #[must_use]
    pub fn with_shared_strategy(mut self, strategy: Arc<AnyStrategy>) -> ResourceCode {
        self.strategy = Some(strategy);
        self
    }

    /// With this that is checked of metadata beside the rules that every resource has.
    #[must_use]
    pub fn with_metadata_checks(mut self, checks: MetadataChecks) -> ResourceCode {
        self.metadata_checks = Some(checks);
        self
    }

    /// With code that answers for a subresource.
    #[must_use]
    pub fn with_subresource(mut self, name: &'static str, handler: impl Handler + 'static) -> ResourceCode {
        self.handlers.insert(name, Arc::new(handler));
        self
    }

    /// What of all registrations is meant for a resource.
    pub(super) fn of(registrations: &[Registration], resource: &Described<'_>) -> Result<ResourceCode, CodeError> {
        let mut code = ResourceCode::default();
        for registration in registrations {
            let taken = match resource.is_meant(registration) {
                Ok(true) => code.take(registration, resource),
                other => other.map(drop),
            };
            taken.map_err(|fault| registration.error(fault))?;
        }
        Ok(code)
    }

    /// The strategy; [`DefaultStrategy`] where there is none.
    pub(in crate::generic) fn strategy(&self) -> Arc<AnyStrategy> {
        self.strategy.clone().unwrap_or_else(|| Arc::new(DefaultStrategy))
    }

    /// What is checked of the metadata; nothing more than of all kinds where nothing is said.
    pub(in crate::generic) fn metadata_checks(&self) -> MetadataChecks {
        let said = self.metadata_checks.or(self.usual_checks);
        said.unwrap_or(MetadataChecks::ONCE)
    }

    /// The fields that stay.
    pub(in crate::generic) fn kept(&self) -> Arc<[Kept]> {
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
