//! Discovery: which groups, versions and resources there are, at `/api` and `/apis`, one by one and aggregated.

mod documents;
mod issuer;
mod resource_list;
mod runtime_config;
mod serve;
mod served;

pub use issuer::IssuerDocuments;
pub use runtime_config::{RuntimeConfig, RuntimeConfigError};
pub use serve::{Ask, Discovery};
pub use served::{Served, ServedGroup, ServedVersion};
