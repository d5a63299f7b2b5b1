//! Generates the types of configuration files. keelson-api has them too, with all others; it lies above the crates that
//! read these files.

fn main() {
    keelson_codegen::Builder::new("../../api-defs")
        .only(&[
            "apiserver.config.k8s.io/v1/apiserver.proto",
            "apiserver.k8s.io/v1beta1/egress.proto",
            "audit.k8s.io/v1/policy.proto",
            "component-base/v1/tracing.proto",
        ])
        .run_or_exit();
}
