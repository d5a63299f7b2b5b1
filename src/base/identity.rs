//! Identity of this server among those that share a store.

use sha2::{Digest, Sha256};

/// Lower case digits of base 32, as of RFC 4648.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Bytes of the hash that the name of a server shows.
const SHOWN: usize = 16;
/// What the server is, for its name.
const KIND: &str = "kube-apiserver";

/// The machine's name.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The server's name, made of the machine's as kube-apiserver makes it: that of its lease.
pub fn server_id() -> String {
    id_of(&host_name())
}

/// The server's name, hashed, for metrics.
pub fn id_hash() -> String {
    let hash = Sha256::digest(server_id().as_bytes());
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn id_of(host: &str) -> String {
    let mut hash = Sha256::new();
    for part in [host, KIND] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        hash.update(length.to_be_bytes());
        hash.update(part);
    }
    format!("apiserver-{}", base32(&hash.finalize()[..SHOWN]))
}

/// Without padding.
fn base32(bytes: &[u8]) -> String {
    let bit = |n: usize| bytes.get(n / 8).is_some_and(|byte| byte >> (7 - n % 8) & 1 == 1);
    let digit = |at: usize| {
        let number = (at..at + 5).fold(0, |number, n| number << 1 | usize::from(bit(n)));
        char::from(DIGITS[number])
    };
    (0..bytes.len() * 8).step_by(5).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kube_apiserver() {
        assert_eq!(id_of("vm"), "apiserver-wlv32tlttr4jl3gtroqexyxapa");
        assert_ne!(id_of("vn"), id_of("vm"));
    }

    #[test]
    fn digits_are_those_of_rfc_4648() {
        for (text, expected) in [("", ""), ("f", "my"), ("fo", "mzxq"), ("foobar", "mzxw6ytboi")] {
            assert_eq!(base32(text.as_bytes()), expected);
        }
    }
}
