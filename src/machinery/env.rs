//! The environment: time and randomness. Code below the binary takes them as arguments, so that a test can replay a
//! seed.

use crate::reflect::time::Time;

/// Wall-clock time.
pub trait Clock: Send + Sync {
    fn now(&self) -> Time;
}

/// Random bytes for uids and generated names; not for keys.
pub trait Entropy: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}
