//! `/version`: what the server says of itself.

use serde::Serialize;

/// The answer of `/version`, in the order of its fields.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub major: String,
    pub minor: String,
    pub emulation_major: String,
    pub emulation_minor: String,
    pub min_compatibility_major: String,
    pub min_compatibility_minor: String,
    /// `v1.36.3+keelson-0.1.0`.
    pub git_version: String,
    pub git_commit: String,
    pub git_tree_state: String,
    pub build_date: String,
    /// Clients read this field as the toolchain of the server.
    pub go_version: String,
    pub compiler: String,
    pub platform: String,
}
