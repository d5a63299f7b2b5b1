//! Service accounts.

use keelson_server::registry::Strategy;

/// The rules of service accounts: those of their metadata.
pub struct ServiceAccountStrategy;

impl Strategy for ServiceAccountStrategy {}
