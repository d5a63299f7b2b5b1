//! The limit of file descriptors of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are kept free of connections: for files, the store, calls of other servers.
const RESERVED: u64 = 256;

/// Raises the limit of open files as far as the system allows without being asked, as Go's programs do. The limit that
/// then holds; `None`: there is none.
pub fn raise_descriptor_limit() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => now.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files stays as it is");
            now.current
        }
    }
}

/// How many connections there may be: no more than `wanted`, and so many that descriptors are left for the rest.
pub(super) fn connections(wanted: usize) -> usize {
    within(wanted, getrlimit(Resource::Nofile).current)
}

fn within(wanted: usize, descriptors: Option<u64>) -> usize {
    let Some(descriptors) = descriptors else {
        return wanted;
    };
    // Where there are few, half of them.
    let room = descriptors.saturating_sub(RESERVED).max(descriptors / 2).max(1);
    wanted.min(usize::try_from(room).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        for (descriptors, connections) in [
            (None, 1000),
            (Some(1 << 20), 1000),
            (Some(1024), 768),
            (Some(300), 150),
            (Some(1), 1),
        ] {
            assert_eq!(within(1000, descriptors), connections, "{descriptors:?}");
        }
    }

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        let raised = raise_descriptor_limit();
        let now = getrlimit(Resource::Nofile);
        assert_eq!((now.current, now.current), (now.maximum, raised));
    }
}
