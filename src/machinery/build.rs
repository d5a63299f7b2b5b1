//! Generates the types of `meta/v1`.

fn main() {
    keelson_codegen::Builder::library().run_or_exit();
}
