//! Discovery: which groups, versions and resources there are, at `/api` and `/apis`, one by one and aggregated.

mod aggregated;
mod documents;
mod issuer;
mod resource_list;
mod serve;

pub use issuer::IssuerDocuments;
pub use serve::{Ask, Discovery};

pub use keelson_registry::{Catalog, MergedCatalog, RuntimeConfig, RuntimeConfigError};
pub use keelson_registry::{Served, ServedGroup, ServedKind, ServedVersion};
