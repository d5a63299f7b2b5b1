//! The resolver of imports: the library's own definition files are built in.

use std::path::PathBuf;

use protox::file::{File, FileResolver, GoogleFileResolver};

/// Files that every folder of definitions may import without having them.
pub const EMBEDDED: &[(&str, &str)] = &[
    ("keelson/api.proto", include_str!("../../api-defs/keelson/api.proto")),
    (
        "meta/v1/apidiscovery.proto",
        include_str!("../../api-defs/meta/v1/apidiscovery.proto"),
    ),
    (
        "meta/v1/intstr.proto",
        include_str!("../../api-defs/meta/v1/intstr.proto"),
    ),
    ("meta/v1/meta.proto", include_str!("../../api-defs/meta/v1/meta.proto")),
    (
        "meta/v1/quantity.proto",
        include_str!("../../api-defs/meta/v1/quantity.proto"),
    ),
    (
        "meta/v1/runtime.proto",
        include_str!("../../api-defs/meta/v1/runtime.proto"),
    ),
    (
        "meta/v1/scale.proto",
        include_str!("../../api-defs/meta/v1/scale.proto"),
    ),
    (
        "meta/v1/unversioned.proto",
        include_str!("../../api-defs/meta/v1/unversioned.proto"),
    ),
    (
        "meta/v1/version.proto",
        include_str!("../../api-defs/meta/v1/version.proto"),
    ),
];

/// Finds files: built-in ones first, so that no folder can change them, then those of the folder.
#[derive(Default)]
pub struct Resolver {
    /// The folder; `None`: there are only the built-in ones.
    pub root: Option<PathBuf>,
}

impl FileResolver for Resolver {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if let Some((name, source)) = EMBEDDED.iter().find(|(n, _)| *n == name) {
            return File::from_source(name, source);
        }
        match &self.root {
            Some(root) if root.join(name).is_file() => {
                let source = std::fs::read_to_string(root.join(name))?;
                File::from_source(name, &source)
            }
            _ => GoogleFileResolver::new().open_file(name),
        }
    }
}
