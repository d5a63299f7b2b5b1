//! Warnings of paths within a volume that overlap: the same one twice, or one that is a folder of another.

use std::fmt;

use keelson_api::core::v1::{DownwardAPIVolumeFile, KeyToPath, PodSpec, VolumeProjection, VolumeSource};
use keelson_machinery::equality;

/// Pairs of paths that are compared in a pod: their number grows with the square of that of the paths.
const MAX_PAIRS: usize = 100_000;
/// Bytes of warnings from which on no more are made: a pair shows names that are as long as who sends them likes, and
/// of so many warnings the rest is not shown.
const MAX_BYTES: usize = 256 << 10;

/// What is found at a path.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// Clear from the volume.
    Own,
    /// One of the kind that has no name.
    Kind(&'static str),
    /// One of the kind, by its name.
    Named(&'static str, &'a str),
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Own => Ok(()),
            Source::Kind(kind) => f.write_str(kind),
            Source::Named(kind, name) => write!(f, "{kind} {name:?}"),
        }
    }
}

/// A path within a volume, and what is found there.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    source: Source<'a>,
}

impl<'a> Place<'a> {
    fn new(path: &'a str, source: Source<'a>) -> Place<'a> {
        Place {
            path: path.trim_end_matches('/'),
            source,
        }
    }

    fn shown(&self) -> String {
        match self.source {
            Source::Own => format!("{:?}", self.path),
            source => format!("{:?} ({source})", self.path),
        }
    }

    fn overlaps(&self, other: &Place<'_>) -> bool {
        let is_within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let empty = self.path.is_empty() || other.path.is_empty();
        !empty && (is_within(self.path, other.path) || is_within(other.path, self.path))
    }
}

/// Of all volumes, in their order.
pub(super) fn of_paths(spec: &PodSpec) -> Vec<String> {
    let mut found = Vec::new();
    let mut room = Room {
        pairs: MAX_PAIRS,
        bytes: MAX_BYTES,
    };
    for volume in &spec.volumes {
        let (name, source) = (volume.name.as_str(), &volume.volume_source);
        for (kind, places) in plain(source) {
            found.extend(overlaps(name, kind, &places, &mut room));
        }
        let Some(projected) = source.projected.as_deref() else {
            continue;
        };
        let empty = projected.sources.iter().filter(|source| equality::is_zero(*source));
        found.extend(empty.map(|_| format!("volume {name:?} (Projected) has no sources provided")));
        let places: Vec<Place<'_>> = projected.sources.iter().flat_map(projection).collect();
        found.extend(overlaps(name, Source::Kind("Projected"), &places, &mut room));
    }
    found
}

/// The sources of a volume that have one kind of files each, and what they are called.
fn plain(source: &VolumeSource) -> Vec<(Source<'_>, Vec<Place<'_>>)> {
    let mut kinds = Vec::new();
    if let Some(map) = &source.config_map {
        let kind = Source::Named("ConfigMap", &map.local_object_reference.name);
        kinds.push((kind, keys(&map.items, Source::Own)));
    }
    if let Some(secret) = &source.secret {
        let kind = Source::Named("Secret", &secret.secret_name);
        kinds.push((kind, keys(&secret.items, Source::Own)));
    }
    if let Some(api) = &source.downward_api {
        kinds.push((Source::Kind("DownwardAPI"), files(&api.items, Source::Own)));
    }
    kinds
}

/// The first source of a projection that names files.
fn projection(from: &VolumeProjection) -> Vec<Place<'_>> {
    if let Some(map) = from.config_map.as_deref().filter(|map| !map.items.is_empty()) {
        let name = &map.local_object_reference.name;
        return keys(&map.items, Source::Named("ConfigMap", name));
    }
    if let Some(secret) = from.secret.as_deref().filter(|secret| !secret.items.is_empty()) {
        let name = &secret.local_object_reference.name;
        return keys(&secret.items, Source::Named("Secret", name));
    }
    if let Some(api) = from.downward_api.as_deref().filter(|api| !api.items.is_empty()) {
        return files(&api.items, Source::Kind("DownwardAPI"));
    }
    if let Some(token) = &from.service_account_token {
        return vec![Place::new(&token.path, Source::Kind("ServiceAccountToken"))];
    }
    if let Some(bundle) = &from.cluster_trust_bundle {
        let name = bundle.name.as_ref().or(bundle.signer_name.as_ref());
        let source = Source::Named("ClusterTrustBundle", name.map_or("", |name| name.as_str()));
        return vec![Place::new(&bundle.path, source)];
    }
    let Some(certificate) = &from.pod_certificate else {
        return Vec::new();
    };
    let paths = [
        (&certificate.certificate_chain_path, "PodCertificate chain"),
        (&certificate.key_path, "PodCertificate key"),
        (&certificate.credential_bundle_path, "PodCertificate credential bundle"),
    ];
    let said = paths.into_iter().filter(|(path, _)| !path.is_empty());
    said.map(|(path, kind)| Place::new(path, Source::Kind(kind))).collect()
}

fn keys<'a>(items: &'a [KeyToPath], source: Source<'a>) -> Vec<Place<'a>> {
    items.iter().map(|item| Place::new(&item.path, source)).collect()
}

fn files<'a>(items: &'a [DownwardAPIVolumeFile], source: Source<'a>) -> Vec<Place<'a>> {
    items.iter().map(|item| Place::new(&item.path, source)).collect()
}

/// What may still be compared and told of a pod.
struct Room {
    pairs: usize,
    bytes: usize,
}

/// Each path with those before it that it overlaps, as far as there is room.
fn overlaps(volume: &str, kind: Source<'_>, places: &[Place<'_>], room: &mut Room) -> Vec<String> {
    let mut found = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let Some(left) = room.pairs.checked_sub(index) else {
            break;
        };
        room.pairs = left;
        for other in places.iter().take(index).filter(|other| place.overlaps(other)) {
            if room.bytes == 0 {
                return found;
            }
            let (place, other) = (place.shown(), other.shown());
            let text = format!("volume {volume:?} ({kind}): overlapping paths: {place} with {other}");
            room.bytes = room.bytes.saturating_sub(text.len());
            found.push(text);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn paths_that_overlap_are_told() {
        let overlapping = |kind: &str, what: &str| format!("volume \"v\" ({kind}): overlapping paths: {what}");
        for (source, expected) in [
            (
                r#""configMap":{"name":"m","items":[{"path":"a"},{"path":"ab"},{"path":"b/a"}]}"#,
                vec![],
            ),
            (
                r#""configMap":{"name":"m","items":[{"path":"a"},{"path":"a/b"},{"path":"a/"}]}"#,
                vec![
                    overlapping(r#"ConfigMap "m""#, r#""a/b" with "a""#),
                    overlapping(r#"ConfigMap "m""#, r#""a" with "a""#),
                    overlapping(r#"ConfigMap "m""#, r#""a" with "a/b""#),
                ],
            ),
            (
                r#""secret":{"secretName":"s","items":[{"path":"a"},{"path":"a"}]}"#,
                vec![overlapping(r#"Secret "s""#, r#""a" with "a""#)],
            ),
            (
                r#""downwardAPI":{"items":[{"path":"a/b"},{"path":"a"}]}"#,
                vec![overlapping("DownwardAPI", r#""a" with "a/b""#)],
            ),
            (
                r#""projected":{"sources":[{},{"secret":{"name":"s","items":[{"path":"t/x"}]}},
                    {"serviceAccountToken":{"path":"t"}},{"configMap":{"name":"m"}}]}"#,
                vec![
                    r#"volume "v" (Projected) has no sources provided"#.to_owned(),
                    overlapping("Projected", r#""t" (ServiceAccountToken) with "t/x" (Secret "s")"#),
                ],
            ),
        ] {
            let spec: PodSpec = read(&format!(r#"{{"volumes":[{{"name":"v",{source}}}]}}"#));
            assert_eq!(of_paths(&spec), expected, "{source}");
        }
    }

    #[test]
    fn of_very_many_paths_not_all_pairs_are_compared() {
        let items = vec![r#"{"path":"a"}"#; 2000].join(",");
        let spec: PodSpec = read(&format!(
            r#"{{"volumes":[{{"name":"v","configMap":{{"items":[{items}]}}}}]}}"#
        ));
        let found = of_paths(&spec).len();
        assert!(found > 1000 && found <= MAX_PAIRS, "{found}");
        let name = "n".repeat(MAX_BYTES);
        let spec: PodSpec = read(&format!(
            r#"{{"volumes":[{{"name":"v","projected":{{"sources":[{{"configMap":{{"name":"{name}","items":[{items}]}}}}]}}}}]}}"#
        ));
        assert_eq!(of_paths(&spec).len(), 1, "one shows as much as is shown in all");
    }
}
