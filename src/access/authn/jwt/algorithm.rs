//! Signature algorithms of tokens.

/// An algorithm of RFC 7518 that an asymmetric key can sign with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Algorithm); 9] = [
        ("RS256", Algorithm::Rs256),
        ("RS384", Algorithm::Rs384),
        ("RS512", Algorithm::Rs512),
        ("ES256", Algorithm::Es256),
        ("ES384", Algorithm::Es384),
        ("ES512", Algorithm::Es512),
        ("PS256", Algorithm::Ps256),
        ("PS384", Algorithm::Ps384),
        ("PS512", Algorithm::Ps512),
    ];

    /// `None` for a name that is none of these, such as `none` and those of shared secrets.
    pub fn named(name: &str) -> Option<Algorithm> {
        let found = Algorithm::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, algorithm)| *algorithm)
    }
}
