//! A server of vans: `cargo run`, then `kubectl apply -f van.yaml`.

use keelson::prelude::*;

mod api {
    //! The types of `api-defs`.
    keelson_machinery::include_api!();
}
mod conversion;
#[cfg(test)]
mod tests;
mod van;

#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

fn main() -> std::process::ExitCode {
    server().run()
}

/// Everything that the server is made of.
fn server() -> Server {
    Server::new("fleet")
        .about("Serves vans.")
        .scheme(&api::SCHEME)
        .code(van::code())
        // Of Kubernetes itself, one line each; leave out what is not needed.
        .namespaces()
        .rbac()
        .reviews()
        .leases()
        .events()
        .custom_resources()
}
