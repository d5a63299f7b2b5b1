//! Versions that the program tells.

use keelson_server::version::Version;

/// The Kubernetes version whose API and behaviour are served.
const MAJOR: &str = "1";
const MINOR: &str = "36";
const PATCH: &str = "3";
/// The oldest minor version that may be emulated.
const OLDEST_MINOR: &str = "35";

/// `keelson v0.1.0 (Kubernetes v1.36.3)`.
pub(crate) fn line(program: &str) -> String {
    format!(
        "{program} v{} (Kubernetes v{MAJOR}.{MINOR}.{PATCH})",
        env!("CARGO_PKG_VERSION")
    )
}

/// The answer of `/version`.
pub(crate) fn current() -> Version {
    let (os, arch) = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("macos", arch) => ("darwin", arch),
        other => other,
    };
    let arch = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    Version {
        major: MAJOR.into(),
        minor: MINOR.into(),
        emulation_major: MAJOR.into(),
        emulation_minor: MINOR.into(),
        min_compatibility_major: MAJOR.into(),
        min_compatibility_minor: OLDEST_MINOR.into(),
        git_version: format!("v{MAJOR}.{MINOR}.{PATCH}+keelson-{}", env!("CARGO_PKG_VERSION")),
        git_commit: String::new(),
        git_tree_state: String::new(),
        build_date: "1970-01-01T00:00:00Z".into(),
        go_version: "rust".into(),
        compiler: "rustc".into(),
        platform: format!("{os}/{arch}"),
    }
}
