//! Generates the code of the built-in definitions, for the crate in `src/api`.

fn main() {
    // The texts come from a crate: no documentation of Kubernetes lies in this repository.
    let texts = keelson_descriptions::builtin()
        .into_iter()
        .map(|(name, d)| (name, (d.text, d.fields)))
        .collect();
    keelson_codegen::Builder::new("../../api-defs")
        .descriptions(texts)
        .run_or_exit();
}
