//! Prelude: what a server with code of its own needs besides [`crate::Server`]: strategies of kinds, admission
//! plug-ins, controllers. `use keelson::prelude::*;` brings it in.

pub use keelson_machinery::field::{ErrorList, FieldError, Path};
pub use keelson_machinery::object::Object;
pub use keelson_machinery::scheme::ConversionFault;
pub use keelson_machinery::status::StatusError;
pub use keelson_machinery::time::{Duration, Time};
pub use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
pub use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};
pub use keelson_registry::outcome::{Outcome, later, now};
pub use keelson_registry::{Change, Client, Context, KindCode, Lister, NamespacedName, Strategy};
pub use keelson_server::server::{Hook, HookContext};

pub use crate::Server;
