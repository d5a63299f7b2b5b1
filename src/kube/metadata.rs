//! Metadata checks: which of them the rules of a kind make once more, so that clients see a cause for each time.
//!
//! What was observed of each kind with faulty labels, annotations and finalizers. Kinds register what they do in their
//! own files; those that register nothing do what is [`USUAL`].

use keelson_registry::{MetadataChecks, RepeatedChecks};

/// What most kinds do.
pub const USUAL: MetadataChecks = MetadataChecks {
    standard_finalizers: true,
    update: RepeatedChecks::BOTH,
    status: RepeatedChecks::CHANGE,
};

/// Of an update these look at what changed alone.
pub const CHANGE: MetadataChecks = MetadataChecks {
    update: RepeatedChecks::CHANGE,
    ..USUAL
};

/// Of an update these look at the whole alone.
pub const WHOLE: MetadataChecks = MetadataChecks {
    update: RepeatedChecks::WHOLE,
    ..USUAL
};

/// These take any finalizer, and check the same again of an update and of a status.
pub const fn any_finalizer(again: RepeatedChecks) -> MetadataChecks {
    MetadataChecks {
        standard_finalizers: false,
        update: again,
        status: again,
    }
}
