//! Fields of features that are not enabled: they are dropped from what is written, unless what was stored has them.

use keelson_api::core::v1::{Lifecycle, PodSpec, PodTemplateSpec, VolumeProjection};
use keelson_machinery::equality;

/// Drops them from a template.
pub fn drop_from_template(new: &mut PodTemplateSpec, old: Option<&PodTemplateSpec>) {
    drop_from(&mut new.spec, old.map(|old| &old.spec));
}

/// Drops them from the specification of a pod.
pub fn drop_from(new: &mut PodSpec, old: Option<&PodSpec>) {
    if old.is_none_or(|old| old.scheduling_group.is_none()) {
        new.scheduling_group = None;
    }
    let was = |is_used: fn(&VolumeProjection) -> bool| old.is_some_and(|old| projections(old).any(is_used));
    let (trust, pods) = (
        was(|p| p.cluster_trust_bundle.is_some()),
        was(|p| p.pod_certificate.is_some()),
    );
    let volumes = new
        .volumes
        .iter_mut()
        .filter_map(|v| v.volume_source.projected.as_mut());
    for source in volumes.flat_map(|p| &mut p.sources) {
        source.cluster_trust_bundle.take_if(|_| !trust);
        source.pod_certificate.take_if(|_| !pods);
    }
    if !old.is_some_and(|old| lifecycles(old).any(|l| l.stop_signal.is_some())) {
        drop_stop_signals(new);
    }
}

fn projections(spec: &PodSpec) -> impl Iterator<Item = &VolumeProjection> {
    let volumes = spec.volumes.iter();
    volumes
        .filter_map(|v| v.volume_source.projected.as_deref())
        .flat_map(|p| &p.sources)
}

fn lifecycles(spec: &PodSpec) -> impl Iterator<Item = &Lifecycle> {
    let containers = spec.containers.iter().chain(&spec.init_containers);
    let added = spec.ephemeral_containers.iter();
    let added = added.map(|c| &c.ephemeral_container_common.lifecycle);
    containers
        .map(|c| &c.lifecycle)
        .chain(added)
        .filter_map(|l| l.as_deref())
}

fn drop_stop_signals(spec: &mut PodSpec) {
    let containers = spec.containers.iter_mut().chain(&mut spec.init_containers);
    let added = spec.ephemeral_containers.iter_mut();
    let added = added.map(|c| &mut c.ephemeral_container_common.lifecycle);
    for lifecycle in containers.map(|c| &mut c.lifecycle).chain(added) {
        let stops = lifecycle.as_mut().is_some_and(|l| l.stop_signal.take().is_some());
        if stops && lifecycle.as_deref().is_some_and(|l| equality::is_zero(l)) {
            *lifecycle = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    const USED: &str = r#"{"containers":[{"name":"c","lifecycle":{"stopSignal":"SIGTERM"}}],
        "volumes":[{"name":"v","projected":{"sources":[{"clusterTrustBundle":{"path":"a"}}]}}]}"#;

    #[test]
    fn what_is_not_enabled_is_dropped() {
        let mut spec: PodSpec = read(USED);
        drop_from(&mut spec, None);
        let text = text(&spec);
        assert!(!text.contains("stopSignal") && !text.contains("lifecycle"), "{text}");
        assert!(!text.contains("clusterTrustBundle"), "{text}");
    }

    #[test]
    fn what_was_stored_with_it_keeps_it() {
        let old: PodSpec = read(USED);
        let mut spec: PodSpec = read(USED);
        drop_from(&mut spec, Some(&old));
        assert_eq!(text(&spec), text(&old));
    }
}
