//! Makes Rust types, tables and OpenAPI documents of the files in api-defs.

fn main() {
    keelson_codegen::Builder::new("api-defs").run_or_exit();
}
