//! Deletes ConfigMaps that nobody needs any more: those whose annotation says that they have expired.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt};

/// Seconds since 1970 after which a ConfigMap may go.
pub const EXPIRES: &str = "janitor.example.com/expires";

/// Deletes what has expired by `now`, in seconds since 1970, in all namespaces. Returns how many were deleted.
///
/// # Errors
/// The cluster cannot be reached, or refuses.
pub async fn sweep(client: &Client, now: u64) -> kube::Result<usize> {
    let expired = |map: &ConfigMap| {
        let expires = map.annotations().get(EXPIRES);
        expires
            .and_then(|text| text.parse::<u64>().ok())
            .is_some_and(|expires| expires <= now)
    };
    let maps = Api::<ConfigMap>::all(client.clone())
        .list(&ListParams::default())
        .await?;
    let mut deleted = 0;
    for map in maps.items.iter().filter(|map| expired(map)) {
        let maps = Api::<ConfigMap>::namespaced(client.clone(), &map.namespace().unwrap_or_default());
        maps.delete(&map.name_any(), &DeleteParams::default()).await?;
        deleted += 1;
    }
    Ok(deleted)
}
