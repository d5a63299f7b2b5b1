//! Metadata checks: which of them the rules of a kind make once more, so that clients see a cause for each time.
//!
//! What was observed of each kind with faulty labels, annotations and finalizers. Kinds register what they do in their
//! own files; those that register nothing do what is [`USUAL`].

use keelson_machinery::meta::v1::ObjectMeta;
use keelson_registry::{ChangeOrder, MetadataChecks, RepeatedChecks};

use crate::faults::Faults;
use crate::typed;

/// What most kinds do.
pub const USUAL: MetadataChecks = MetadataChecks {
    create: true,
    order: ChangeOrder::ChangeFirst,
    standard_finalizers: true,
    update: RepeatedChecks::BOTH,
    status: RepeatedChecks::CHANGE,
    subresource: RepeatedChecks::BOTH,
};

/// Of an update these look at the whole before they look at what changed.
pub const WHOLE_FIRST: MetadataChecks = MetadataChecks {
    order: ChangeOrder::WholeFirst,
    ..USUAL
};

/// Of an update these look at all of the metadata before they look at what is beside it.
pub const METADATA_FIRST: MetadataChecks = MetadataChecks {
    order: ChangeOrder::MetadataFirst,
    ..USUAL
};

/// Of an update these look at what changed alone.
pub const CHANGE: MetadataChecks = MetadataChecks {
    update: RepeatedChecks::CHANGE,
    subresource: RepeatedChecks::CHANGE,
    ..USUAL
};

/// Of an update these look at the whole alone.
pub const WHOLE: MetadataChecks = MetadataChecks {
    update: RepeatedChecks::WHOLE,
    subresource: RepeatedChecks::WHOLE,
    ..USUAL
};

/// These take any finalizer, and check the same again of an update and of a status.
pub const fn any_finalizer(again: RepeatedChecks) -> MetadataChecks {
    MetadataChecks {
        create: true,
        order: ChangeOrder::ChangeFirst,
        standard_finalizers: false,
        update: again,
        status: again,
        subresource: again,
    }
}

/// These leave metadata to what every kind checks.
pub const NONE: MetadataChecks = MetadataChecks {
    create: false,
    ..any_finalizer(RepeatedChecks::NONE)
};

/// The metadata of what is made of a template: labels and annotations alone may be said.
pub fn of_template(f: &mut Faults<'_>, metadata: &ObjectMeta) {
    f.annotations("annotations", &metadata.annotations);
    f.labels("labels", &metadata.labels);
    for name in typed::fields_beside(metadata, &["annotations", "labels"]) {
        // The API tells the names of Go, with a small letter in front.
        let name = if name == "uid" { "uID" } else { name };
        f.at(name).forbidden("cannot be set");
    }
}
