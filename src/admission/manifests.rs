//! Configurations out of files of the server's machine, which v1.36 has behind a feature gate: it is off.

/// Names a folder with such files.
#[derive(Debug, thiserror::Error)]
#[error(
    "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate \
     to be enabled"
)]
pub(crate) struct ManifestsForbidden;

/// Checks the folder that a section of the configuration names; "": it names none.
///
/// # Errors
/// It names one.
pub(crate) fn forbid(folder: &str) -> Result<(), ManifestsForbidden> {
    match folder.is_empty() {
        true => Ok(()),
        false => Err(ManifestsForbidden),
    }
}
