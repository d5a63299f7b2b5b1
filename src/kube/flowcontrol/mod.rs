//! The group flowcontrol.apiserver.k8s.io.

pub mod dangling;
mod go;
mod reader;
mod validate;

use keelson_machinery::field::ErrorList;
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Reflect;
use keelson_server::flowcontrol::spec::{GROUP, LEVELS, SCHEMAS};
use keelson_server::registry::write::Part;
use keelson_server::registry::{Context, KindCode, Strategy};

use super::status_alone::StatusAlone;
use super::typed::typed;

pub use reader::Reader;

/// Registers the rules of both kinds.
pub fn register(code: &mut KindCode) {
    code.strategy(
        GROUP,
        SCHEMAS,
        Rules {
            whole: validate::schema,
            status: validate::schema_status,
        },
    );
    code.strategy(
        GROUP,
        LEVELS,
        Rules {
            whole: validate::level,
            status: validate::level_status,
        },
    );
}

/// The rules of a kind: of the whole object, and of its status.
struct Rules<T> {
    whole: fn(&T) -> ErrorList,
    status: fn(&T) -> ErrorList,
}

impl<T: Reflect> Strategy for Rules<T> {
    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        StatusAlone.reset_fields(part)
    }

    fn prepare_for_status_update(&self, context: &Context, new: &mut dyn Object, old: &dyn Object) {
        StatusAlone.prepare_for_status_update(context, new, old);
    }

    fn validate(&self, _context: &Context, object: &dyn Object) -> ErrorList {
        typed::<T>(object).map(self.whole).unwrap_or_default()
    }

    fn validate_update(&self, _context: &Context, new: &dyn Object, _old: &dyn Object) -> ErrorList {
        typed::<T>(new).map(self.whole).unwrap_or_default()
    }

    fn validate_status_update(&self, _context: &Context, new: &dyn Object, _old: &dyn Object) -> ErrorList {
        typed::<T>(new).map(self.status).unwrap_or_default()
    }
}
