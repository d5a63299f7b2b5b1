//! The sources of the project as text.

use std::path::{Path, PathBuf};

/// The folder of the repository.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// Every source file below a folder, but tests and benches, with its text up to its own tests, by its path below the
/// repository's root.
pub fn sources(folder: &Path) -> Vec<(String, String)> {
    let root = root();
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            if name.ends_with(".rs") && !is_test(&name) {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                found.push((name, code.to_owned()));
            }
        }
    }
    assert!(found.len() > 10, "{}: {} files", folder.display(), found.len());
    found.sort();
    found
}

fn is_test(name: &str) -> bool {
    ["/tests/", "/benches/", "/tests.rs"]
        .iter()
        .any(|part| name.contains(part))
}
