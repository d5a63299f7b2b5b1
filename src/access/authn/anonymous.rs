//! Requests without credentials.

/// Which of them get the identity `system:anonymous`; the others are refused.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Anonymous {
    #[default]
    Nowhere,
    Everywhere,
    /// Those for exactly these paths.
    On(Vec<String>),
}

impl Anonymous {
    pub fn admits(&self, path: &str) -> bool {
        match self {
            Anonymous::Nowhere => false,
            Anonymous::Everywhere => true,
            Anonymous::On(paths) => paths.iter().any(|one| one == path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_whole() {
        let health = Anonymous::On(vec!["/healthz".into(), "/livez".into()]);
        assert!(health.admits("/livez"));
        for path in ["/livez/", "/livez/ping", "/", "/LIVEZ", ""] {
            assert!(!health.admits(path), "{path:?}");
        }
        assert!(Anonymous::Everywhere.admits("/api"));
        assert!(!Anonymous::default().admits("/livez"));
    }
}
