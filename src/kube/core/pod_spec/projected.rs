//! Projected volumes: files of several sources, each with a path of its own. Sources of features that are switched off
//! are dropped before.

use std::collections::HashSet;

use keelson_api::core::v1::{
    DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};

use super::env::{self, VOLUME_FIELDS};
use super::{Options, volumes};
use crate::faults::Faults;

const CONFLICT: &str = "conflicting duplicate paths";
/// Seconds: shortest lifetime of a token.
const SHORTEST_TOKEN: i64 = 600;

/// Paths that are taken.
type Paths<'a> = HashSet<&'a str>;

/// Checks a projected volume.
pub fn check(f: &mut Faults<'_>, source: &ProjectedVolumeSource, options: &Options) {
    volumes::mode(&mut f.at("defaultMode"), source.default_mode);
    let mut paths = Paths::new();
    for (place, projection) in source.sources.iter().enumerate() {
        one(f, place, projection, &mut paths, options);
    }
}

/// The sources of one projection. Paths that are taken are faults of the volume, not of its sources.
fn one<'a>(f: &mut Faults<'_>, place: usize, from: &'a VolumeProjection, paths: &mut Paths<'a>, options: &Options) {
    if let Some(secret) = &from.secret {
        let object = &secret.local_object_reference.name;
        keys(f, (place, "secret"), object, &secret.items, paths);
    }
    if let Some(map) = &from.config_map {
        let object = &map.local_object_reference.name;
        keys(f, (place, "configMap"), object, &map.items, paths);
    }
    for file in from.downward_api.iter().flat_map(|api| &api.items) {
        downward_file(&mut f.at("sources").index(place).at("downwardAPI"), file);
        if !file.path.is_empty() {
            take(f, &file.path, &file.path, paths);
        }
    }
    if let Some(from) = from.service_account_token.as_deref() {
        token(f, place, from, options);
    }
    let sources = [
        from.secret.is_some(),
        from.config_map.is_some(),
        from.downward_api.is_some(),
        from.service_account_token.is_some(),
    ];
    if sources.iter().filter(|is_there| **is_there).count() > 1 {
        let text = "may not specify more than 1 volume type per source";
        f.at("sources").index(place).forbidden(text);
    }
}

/// A fault of the volume if the path is taken; `shown` is what is said to be wrong.
fn take<'a>(f: &mut Faults<'_>, path: &'a str, shown: &str, paths: &mut Paths<'a>) {
    f.invalid_if(!paths.insert(path), shown, CONFLICT);
}

/// Keys of an object, each of which becomes a file.
fn keys<'a>(
    f: &mut Faults<'_>,
    (place, source): (usize, &str),
    object: &str,
    items: &'a [KeyToPath],
    paths: &mut Paths<'a>,
) {
    f.at("sources").index(place).at(source).at("name").filled(object);
    for (number, item) in items.iter().enumerate() {
        let mut sources = f.at("sources");
        volumes::key_to_path(&mut sources.index(place).at(source).at("items").index(number), item);
        if !item.path.is_empty() {
            take(f, &item.path, object, paths);
        }
    }
}

fn token(f: &mut Faults<'_>, place: usize, token: &ServiceAccountTokenProjection, options: &Options) {
    let seconds = token.expiration_seconds.unwrap_or_default();
    let too = match seconds {
        ..SHORTEST_TOKEN => Some("may not specify a duration less than 10 minutes"),
        _ if seconds > 1 << 32 => Some("may not specify a duration larger than 2^32 seconds"),
        _ => None,
    };
    if let Some(text) = too {
        let mut sources = f.at("sources");
        let mut source = sources.index(place);
        let mut token = source.at("serviceAccountToken");
        token.at("expirationSeconds").invalid(seconds, text);
    }
    if f.at("path").filled(&token.path) && !options.outside_token_paths {
        f.at("path").unreserved_path(&token.path);
    }
}

/// A file with a field of the pod, or with an amount of one of its containers.
pub fn downward_file(f: &mut Faults<'_>, file: &DownwardAPIVolumeFile) {
    f.at("path").filled(&file.path);
    f.at("path").unreserved_path(&file.path);
    match (file.field_ref.as_deref(), file.resource_field_ref.as_deref()) {
        (Some(field), other) => {
            env::object_field(&mut f.at("fieldRef"), field, &VOLUME_FIELDS);
            if other.is_some() {
                f.invalid(
                    "resource",
                    "fieldRef and resourceFieldRef can not be specified simultaneously",
                );
            }
        }
        (None, Some(field)) => env::resource_field(&mut f.at("resourceFieldRef"), field, true),
        (None, None) => f.required("one of fieldRef and resourceFieldRef is required"),
    }
    volumes::mode(&mut f.at("mode"), file.mode);
}
