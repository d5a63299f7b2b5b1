//! The one comparison of secrets, so that how long a refusal takes tells nothing of what would have been right.

use subtle::ConstantTimeEq;

/// Whether both are the same. It takes as long wherever they differ; texts of other lengths are told apart at once.
pub(super) fn is_same(known: &[u8], given: &[u8]) -> bool {
    known.ct_eq(given).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_count() {
        assert!(is_same(b"", b"") && is_same(b"abc", b"abc"));
        for other in ["", "ab", "abd", "bbc", "abcd"] {
            assert!(!is_same(b"abc", other.as_bytes()), "{other}");
        }
    }
}
