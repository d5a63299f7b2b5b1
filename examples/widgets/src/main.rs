//! A server of widgets: `cargo run`, then `kubectl apply -f widget.yaml`.

use std::process::ExitCode;

mod api {
    //! The types of `api-defs`.
    keelson_machinery::include_api!();
}
mod conversion;

#[global_allocator]
static ALLOCATOR: keelson::Allocator = keelson::Allocator;

fn main() -> ExitCode {
    keelson::Server::new("widgets")
        .about("Serves widgets and the factories that make them.")
        .scheme(&api::SCHEME)
        .run()
}
