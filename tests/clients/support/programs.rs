//! Programs that tests start.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The server of this package.
pub fn keelson() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_keelson"))
}

/// The example server of two kinds, built on first use into the target folder of this test.
pub fn widgets() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| example("widgets"))
}

/// The one with code of its own, without the features that it has no need of.
pub fn bookings() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| example("bookings"))
}

fn example(name: &str) -> PathBuf {
    let target = keelson().ancestors().nth(2).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", target)
        .status()
        .unwrap();
    assert!(status.success(), "building {}", folder.display());
    target.join("debug").join(name)
}

/// The path of a program that tests use if it is there: the value of `variable`, or `name` in PATH. Where CI=true
/// it must be there; elsewhere its absence is told on one line and the caller skips its test.
pub fn tool(name: &str, variable: &str) -> Option<PathBuf> {
    let given = std::env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    let found = given.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    });
    if found.is_none() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "{name} is missing, and CI must run its tests"
        );
        println!("skipped: there is no {name} on this machine");
    }
    found
}
