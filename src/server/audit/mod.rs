//! Auditing: a record of who asked for what and how it ended, as `audit.k8s.io/v1` events.
//!
//! A [`Policy`] says how much is recorded of which request. The filter of the chain ([`crate::filters::audit`]) opens a
//! [`Record`], the filters and handlers behind it tell it what they learn through the request's [`Trail`], and at each
//! stage an event goes to the [`sink`]s. A request that no rule fits costs the walk over the rules and nothing more.

mod addresses;
mod annotations;
mod auditor;
mod event;
mod level;
mod managed_fields;
mod outcome;
mod policy;
mod record;
pub mod sink;
mod trail;

pub use auditor::{Audit, AuditError, AuditSettings};
pub use level::{Level, Stage, Stages};
pub use outcome::{Outcome, Recording};
pub use policy::{Decision, Policy, PolicyError};
pub use record::{Audited, Record};
pub use trail::Trail;
