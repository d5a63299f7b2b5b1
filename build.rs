//! Generates the code of the built-in definitions, for the crate in `src/api`.

fn main() {
    chosen(keelson_codegen::Builder::new("../../api-defs"))
        .descriptions(texts())
        .run_or_exit();
}

#[cfg(feature = "kubernetes")]
fn chosen(all: keelson_codegen::Builder) -> keelson_codegen::Builder {
    all
}

/// What servers of other kinds choose from (`keelson_kube::BuiltIn`).
#[cfg(not(feature = "kubernetes"))]
fn chosen(all: keelson_codegen::Builder) -> keelson_codegen::Builder {
    all.only(&[
        "apiextensions.k8s.io/v1/apiextensions.proto",
        "apiextensions.k8s.io/v1beta1/apiextensions.proto",
        "authentication.k8s.io/v1/authentication.proto",
        "authentication.k8s.io/v1beta1/authentication.proto",
        "authorization.k8s.io/v1/authorization.proto",
        "authorization.k8s.io/v1beta1/authorization.proto",
        "coordination.k8s.io/v1/coordination.proto",
        "coordination.k8s.io/v1alpha2/coordination.proto",
        "coordination.k8s.io/v1beta1/coordination.proto",
        "core/v1/core.proto",
        "core/v1/event.proto",
        "core/v1/namespace.proto",
        "events.k8s.io/v1/events.proto",
        "rbac.authorization.k8s.io/v1/rbac.proto",
    ])
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
