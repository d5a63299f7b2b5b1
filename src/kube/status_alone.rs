//! Kinds whose status is all that a write through `/status` changes.

use keelson_machinery::object::Object;
use keelson_registry::write::Part;
use keelson_registry::{Context, Strategy};

use super::typed::keep_all_metadata;

/// Of most kinds a write to the status may change labels and annotations too; of these it may not.
pub struct StatusAlone;

impl Strategy for StatusAlone {
    type Object = dyn Object;

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut dyn Object, old: &dyn Object) {
        keep_all_metadata(new, old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, read};
    use keelson_api::networking_k8s_io::v1::ServiceCIDR;

    #[test]
    fn metadata_stays() {
        let old: ServiceCIDR = read(r#"{"metadata":{"labels":{"a":"b"}}}"#);
        let mut new: ServiceCIDR = read(r#"{"metadata":{"annotations":{"c":"d"},"finalizers":["e/f"]}}"#);
        StatusAlone.prepare_for_status_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.labels, old.metadata.labels);
        assert!(new.metadata.annotations.is_empty() && new.metadata.finalizers.is_empty());
    }
}
