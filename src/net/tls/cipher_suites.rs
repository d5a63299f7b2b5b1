//! Cipher suites by the names that Go and kube-apiserver's flags have for them.

use rustls::CipherSuite as Id;

/// A cipher suite that a command line may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CipherSuite {
    /// Its name in Go.
    pub name: &'static str,
    /// What rustls calls it; `None`: this server does not have it (CBC, RC4, 3DES, RSA key exchange).
    id: Option<Id>,
    /// Go advises against it.
    pub insecure: bool,
}

impl CipherSuite {
    /// The suite of this name.
    pub fn named(name: &str) -> Option<CipherSuite> {
        SUITES.iter().find(|suite| suite.name == name).copied()
    }

    /// Whether this server can speak it.
    pub fn is_available(&self) -> bool {
        self.id.is_some()
    }

    pub(super) fn is(&self, id: Id) -> bool {
        self.id == Some(id)
    }

    const fn safe(name: &'static str, id: Id) -> CipherSuite {
        CipherSuite {
            name,
            id: Some(id),
            insecure: false,
        }
    }

    const fn missing(name: &'static str, insecure: bool) -> CipherSuite {
        CipherSuite {
            name,
            id: None,
            insecure,
        }
    }
}

/// All that Go's `crypto/tls` has, in two spellings where it has two.
const SUITES: [CipherSuite; 27] = [
    CipherSuite::safe("TLS_AES_128_GCM_SHA256", Id::TLS13_AES_128_GCM_SHA256),
    CipherSuite::safe("TLS_AES_256_GCM_SHA384", Id::TLS13_AES_256_GCM_SHA384),
    CipherSuite::safe("TLS_CHACHA20_POLY1305_SHA256", Id::TLS13_CHACHA20_POLY1305_SHA256),
    CipherSuite::safe(
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        Id::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    CipherSuite::safe(
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        Id::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    CipherSuite::safe(
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        Id::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    CipherSuite::safe(
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        Id::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    CipherSuite::safe(
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        Id::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
    CipherSuite::safe(
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        Id::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    CipherSuite::safe(
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
        Id::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    CipherSuite::safe(
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        Id::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    CipherSuite::missing("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", false),
    CipherSuite::missing("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", false),
    CipherSuite::missing("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", false),
    CipherSuite::missing("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", false),
    CipherSuite::missing("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", true),
    CipherSuite::missing("TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", true),
    CipherSuite::missing("TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", true),
    CipherSuite::missing("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", true),
    CipherSuite::missing("TLS_ECDHE_RSA_WITH_RC4_128_SHA", true),
    CipherSuite::missing("TLS_RSA_WITH_3DES_EDE_CBC_SHA", true),
    CipherSuite::missing("TLS_RSA_WITH_AES_128_CBC_SHA", true),
    CipherSuite::missing("TLS_RSA_WITH_AES_128_CBC_SHA256", true),
    CipherSuite::missing("TLS_RSA_WITH_AES_128_GCM_SHA256", true),
    CipherSuite::missing("TLS_RSA_WITH_AES_256_CBC_SHA", true),
    CipherSuite::missing("TLS_RSA_WITH_AES_256_GCM_SHA384", true),
    CipherSuite::missing("TLS_RSA_WITH_RC4_128_SHA", true),
];
