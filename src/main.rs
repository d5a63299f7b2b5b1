//! The `keelson` program: a drop-in kube-apiserver.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

fn main() -> ExitCode {
    keelson::Server::new("keelson")
        .about("Keelson serves the Kubernetes API from its definition files, in place of kube-apiserver.")
        .kubernetes()
        .run()
}
