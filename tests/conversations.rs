//! Recorded conversations: every answer of kube-apiserver that was recorded, compared with ours.
//!
//! `cargo test --test conversations -- list/ crud/pods` plays only cases whose names contain one of these texts.

use std::path::Path;
use std::process::ExitCode;

use keelson_conversations::suite::Suite;

fn main() -> ExitCode {
    let (program, project) = (env!("CARGO_BIN_EXE_keelson"), env!("CARGO_MANIFEST_DIR"));
    Suite::from_args(Path::new(program), Path::new(project)).run()
}
