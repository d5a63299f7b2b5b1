//! The volume with a service account's token, and its mount in each container.

use keelson_api::core::v1::{
    ConfigMapProjection, Container, DownwardAPIProjection, DownwardAPIVolumeFile, KeyToPath, LocalObjectReference,
    ObjectFieldSelector, PodSpec, ProjectedVolumeSource, ServiceAccountTokenProjection, Volume, VolumeMount,
    VolumeProjection,
};

/// Names of such volumes begin so.
const PREFIX: &str = "kube-api-access-";
/// Where clients look.
const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// A token that is used after an hour is warned of; this is how long it is good for.
const SECONDS: i64 = 3607;
const MODE: i32 = 0o644;
/// The longest name of a volume, in bytes.
const MAX_NAME: usize = 63;

/// Mounts the token in every container that mounts nothing there. `suffix` ends the name of the volume where it has
/// none.
pub fn mount(spec: &mut PodSpec, suffix: &str) {
    let known = spec.volumes.iter().find(|volume| volume.name.starts_with(PREFIX));
    let known = known.map(|volume| volume.name.clone());
    if known.as_ref().is_some_and(|name| name.len() > MAX_NAME) {
        // The pod is refused for that; each mount would have the name once more.
        return;
    }
    let is_there = known.is_some();
    let name = known.unwrap_or_else(|| format!("{PREFIX}{suffix}"));
    let mut is_needed = false;
    for container in spec.init_containers.iter_mut().chain(&mut spec.containers) {
        is_needed |= mount_in(container, &name);
    }
    if is_needed && !is_there {
        spec.volumes.push(volume(name));
    }
}

/// False: something else is mounted there.
fn mount_in(container: &mut Container, volume: &str) -> bool {
    if container.volume_mounts.iter().any(|mount| mount.mount_path == PATH) {
        return false;
    }
    container.volume_mounts.push(VolumeMount {
        name: volume.to_owned(),
        read_only: true,
        mount_path: PATH.to_owned(),
        ..VolumeMount::default()
    });
    true
}

fn volume(name: String) -> Volume {
    let mut volume = Volume {
        name,
        ..Volume::default()
    };
    volume.volume_source.projected = Some(Box::new(ProjectedVolumeSource {
        default_mode: Some(MODE),
        sources: vec![token(), authority(), namespace()],
    }));
    volume
}

fn token() -> VolumeProjection {
    VolumeProjection {
        service_account_token: Some(Box::new(ServiceAccountTokenProjection {
            path: "token".to_owned(),
            expiration_seconds: Some(SECONDS),
            ..ServiceAccountTokenProjection::default()
        })),
        ..VolumeProjection::default()
    }
}

fn authority() -> VolumeProjection {
    const KEY: &str = "ca.crt";
    VolumeProjection {
        config_map: Some(Box::new(ConfigMapProjection {
            local_object_reference: LocalObjectReference {
                name: "kube-root-ca.crt".to_owned(),
            },
            items: vec![KeyToPath {
                key: KEY.to_owned(),
                path: KEY.to_owned(),
                ..KeyToPath::default()
            }],
            ..ConfigMapProjection::default()
        })),
        ..VolumeProjection::default()
    }
}

fn namespace() -> VolumeProjection {
    VolumeProjection {
        downward_api: Some(Box::new(DownwardAPIProjection {
            items: vec![DownwardAPIVolumeFile {
                path: "namespace".to_owned(),
                field_ref: Some(Box::new(ObjectFieldSelector {
                    api_version: "v1".to_owned(),
                    field_path: "metadata.namespace".to_owned(),
                })),
                ..DownwardAPIVolumeFile::default()
            }],
        })),
        ..VolumeProjection::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, text};

    const MOUNT: &str =
        r#"{"name":"kube-api-access-x","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}"#;

    #[test]
    fn every_container_mounts_it_once() {
        let own = r#"{"name":"mine","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}"#;
        let mut spec: PodSpec = read(&format!(
            r#"{{"initContainers":[{{"name":"i"}}],"containers":[{{"name":"c"}},{{"name":"d","volumeMounts":[{own}]}}]}}"#
        ));
        mount(&mut spec, "x");
        let volume = concat!(
            r#"{"name":"kube-api-access-x","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"#,
            r#""path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},"#,
            r#"{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","#,
            r#""fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}"#
        );
        assert_eq!(text(&spec.volumes[0]), volume);
        assert_eq!(text(&spec.init_containers[0].volume_mounts[0]), MOUNT);
        assert_eq!(text(&spec.containers[0].volume_mounts[0]), MOUNT);
        assert_eq!(spec.containers[1].volume_mounts.len(), 1);
        let once = text(&spec);
        mount(&mut spec, "y");
        assert_eq!(text(&spec), once, "a second time nothing changes");
    }

    #[test]
    fn a_name_that_no_volume_may_have_is_not_repeated() {
        let name = format!("{PREFIX}{}", "x".repeat(MAX_NAME));
        let mut spec: PodSpec = read(&format!(
            r#"{{"volumes":[{{"name":"{name}"}}],"containers":[{{"name":"c"}}]}}"#
        ));
        mount(&mut spec, "y");
        assert!(spec.containers[0].volume_mounts.is_empty());
    }

    #[test]
    fn a_volume_that_is_there_is_used_and_none_is_made_for_nothing() {
        let mut spec: PodSpec = read(r#"{"volumes":[{"name":"kube-api-access-x"}],"containers":[{"name":"c"}]}"#);
        mount(&mut spec, "y");
        assert_eq!(
            (spec.volumes.len(), text(&spec.containers[0].volume_mounts[0]).as_str()),
            (1, MOUNT)
        );
        let mut spec = PodSpec::default();
        mount(&mut spec, "y");
        assert!(spec.volumes.is_empty());
    }
}
