//! Generates the sample's types.

fn main() {
    keelson_build::definitions("api-defs").run_or_exit();
}
