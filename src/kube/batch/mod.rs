//! The group batch.

mod cron_job;
mod job;
mod schedule;

use keelson_registry::KindCode;

/// Registers the rules of this group.
pub fn register(code: &mut KindCode) {
    cron_job::register(code);
    job::register(code);
}
