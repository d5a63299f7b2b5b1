//! Generates the sample's types.

fn main() {
    keelson_codegen::Builder::new("api-defs").run_or_exit();
}
