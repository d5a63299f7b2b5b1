//! Generates the code of the built-in definitions, for the crate in `src/api`.

fn main() {
    keelson_codegen::Builder::new("../../api-defs")
        .descriptions(texts())
        .run_or_exit();
}

/// The texts come from a crate: no documentation of Kubernetes lies in this repository.
#[cfg(feature = "descriptions")]
fn texts() -> keelson_codegen::Descriptions {
    let all = keelson_descriptions::builtin().into_iter();
    all.map(|(name, d)| (name, (d.text, d.fields))).collect()
}

#[cfg(not(feature = "descriptions"))]
fn texts() -> keelson_codegen::Descriptions {
    keelson_codegen::Descriptions::new()
}
