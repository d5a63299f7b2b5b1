//! The group flowcontrol.apiserver.k8s.io.

pub mod dangling;
mod go;
mod reader;
mod validate;

use keelson_api::flowcontrol_apiserver_k8s_io::v1::{FlowSchema, PriorityLevelConfiguration};
use keelson_machinery::field::ErrorList;
use keelson_machinery::object::Object;
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, Strategy};

use super::metadata;
use super::status_alone::StatusAlone;
use crate::cells;
use crate::faults::{self, Faults};

pub use reader::Reader;

/// Registers the rules of both kinds.
pub fn register(code: &mut KindCode) {
    code.kind::<FlowSchema>()
        .strategy(Rules {
            whole: validate::schema,
            status: validate::schema_status,
        })
        .metadata_checks(metadata::WHOLE)
        .cells(cells::flow::FLOW_SCHEMA);
    code.kind::<PriorityLevelConfiguration>()
        .strategy(Rules {
            whole: validate::level,
            status: validate::level_status,
        })
        .metadata_checks(metadata::WHOLE)
        .cells(cells::flow::PRIORITY_LEVEL_CONFIGURATION);
}

/// The rules of a kind: of the whole object, and of its status.
struct Rules<T> {
    whole: fn(&mut Faults<'_>, &T),
    status: fn(&mut Faults<'_>, &T),
}

impl<T: Object> Strategy for Rules<T> {
    type Object = T;

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        StatusAlone.reset_fields(part)
    }

    fn prepare_for_status_update(&self, context: &Context, new: &mut T, old: &T) {
        StatusAlone.prepare_for_status_update(context, new, old);
    }

    fn validate(&self, _context: &Context, new: &T, _old: Option<&T>) -> ErrorList {
        faults::of_object(|f| (self.whole)(f, new))
    }

    fn validate_status_update(&self, _context: &Context, new: &T, _old: &T) -> ErrorList {
        faults::of_object(|f| (self.status)(f, new))
    }
}
