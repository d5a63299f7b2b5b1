//! From definition files to CustomResourceDefinitions and back, for `crd export` and `crd import`.

mod export;
mod import;
mod schema;

pub use export::{ExportError, export};
pub use import::{DefinitionFile, ImportError, import};

#[cfg(test)]
mod tests;
