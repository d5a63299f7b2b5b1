//! Storage migration: an object written as it is stored today.

use keelson_machinery::status::StatusError;
use keelson_storage::{Entry, Expect, Written};

use super::Resource;
use super::write::{Lease, OBJECT_MODIFIED};

impl Resource {
    /// Writes what an entry holds as it would be stored today: in the storage version, form and encryption of now, with
    /// the defaults that were added since. Whether anything had to be written.
    ///
    /// # Errors
    /// The object can't be decoded; 409 where another writer was faster.
    pub async fn rewrite(&self, entry: &Entry) -> Result<bool, StatusError> {
        let mut object = self.decode(entry)?;
        let value = self.encode(&mut *object).await?;
        if self.holds(entry, &value)? {
            return Ok(false);
        }
        let value = self.seal(&entry.key, &value)?;
        let expect = Expect::Revision(entry.mod_revision);
        let written = self.put(&entry.key, expect, value, Lease::Of(entry.lease)).await;
        match written.map_err(|e| self.store_error(e))? {
            Written::Done { .. } => Ok(true),
            Written::Conflict { .. } => {
                let name = &object.meta().name;
                Err(StatusError::conflict(&self.group, &self.plural, name, OBJECT_MODIFIED))
            }
        }
    }
}
