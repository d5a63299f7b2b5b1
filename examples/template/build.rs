//! Makes Rust types, tables and OpenAPI documents of the files in api-defs.

fn main() {
    keelson_build::definitions("api-defs").run_or_exit();
}
