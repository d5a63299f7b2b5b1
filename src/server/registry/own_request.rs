//! Requests of the server to itself.

use std::rc::Rc;
use std::sync::Arc;

use keelson_machinery::managed::Writer;
use keelson_machinery::object::api_version;
use keelson_machinery::time::Time;

use super::managed::{RequestWriter, Tracking};
use super::{Context, Resource, Warnings};
use crate::authz::Authorization;
use crate::user::{GROUP_MASTERS, User};

/// The server's own identity.
const SERVER: &str = "system:apiserver";

impl Resource {
    /// A request of the server itself; `manager` is who owns what it writes. `subresource` may be empty.
    pub fn own_request(&self, manager: &str, namespace: &str, subresource: &str, now: Time) -> Context {
        let kind = self.hub;
        let writer = Writer {
            manager: manager.to_owned(),
            api_version: api_version(kind.group, kind.version),
            subresource: subresource.to_owned(),
            now: Some(now.truncate_to_seconds()),
        };
        Context {
            now,
            namespace: namespace.to_owned(),
            user: User {
                name: SERVER.to_owned(),
                groups: vec![GROUP_MASTERS.to_owned()],
                ..User::default()
            },
            asked: Arc::default(),
            registry: None,
            authorization: Authorization::default(),
            dry_run: false,
            tracking: Tracking::Update(RequestWriter {
                kind,
                writer,
                written_empty: Rc::default(),
            }),
            warnings: Warnings::default(),
        }
    }
}
