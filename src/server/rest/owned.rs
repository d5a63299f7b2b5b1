//! `managedFields` of what is answered and not stored: questions such as TokenReview come back with them.

use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::managedfields::{self, Change, Managed, VersionError, Versions, Writer};
use keelson_machinery::object::{Gvk, Kind, Object};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;

/// A kind in one version.
struct OneVersion<'a>(&'a str);

impl Versions for OneVersion<'_> {
    fn knows(&self, api_version: &str) -> bool {
        api_version == self.0
    }

    fn convert(&self, _object: &dyn Reflect, api_version: &str) -> Result<Box<dyn Object>, VersionError> {
        Err(VersionError::Unknown(format!(
            "there is no version {api_version:?} of it"
        )))
    }
}

/// The writer owns everything that `object` has and `empty`, a new one of its kind, has not. What has no metadata stays
/// as it is.
pub(super) fn own_fields(
    object: &mut dyn Kind,
    empty: &dyn Kind,
    gvk: &Gvk,
    mut writer: Writer,
) -> Result<(), StatusError> {
    let Some(metadata) = managedfields::metadata(object.as_reflect_mut()) else {
        return Ok(());
    };
    let given = std::mem::take(&mut metadata.managed_fields);
    let mut owners = match managedfields::is_reset(&given) {
        true => Managed::default(),
        false => Managed::read_given(&given).unwrap_or_default(),
    };
    writer.api_version = gvk.api_version();
    let version = writer.api_version.clone();
    let change = Change {
        old: empty.as_reflect(),
        new: object.as_reflect(),
        ignored: &FieldSet::EMPTY,
        versions: &OneVersion(&version),
    };
    managedfields::track(&mut owners, change, &writer).map_err(StatusError::internal_error)?;
    if let Some(metadata) = managedfields::metadata(object.as_reflect_mut()) {
        metadata.managed_fields = owners.write();
    }
    Ok(())
}
