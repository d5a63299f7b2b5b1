//! The `keelson` program: a drop-in kube-apiserver.

use std::process::ExitCode;

fn main() -> ExitCode {
    keelson::Server::new("keelson")
        .about("Keelson serves the Kubernetes API from its definition files, in place of kube-apiserver.")
        .kubernetes()
        .run()
}
