//! Recorded documents of kube-apiserver, which lie beside the repository where they are at hand.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder of the recorded documents; where it is missing, a line says that the test compares nothing.
pub fn facts() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/facts");
    if folder.is_dir() {
        return Some(folder);
    }
    let _ = writeln!(
        std::io::stderr(),
        "skipped: ../shared/facts, the documents of kube-apiserver, is not here"
    );
    None
}
