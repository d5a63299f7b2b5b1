//! Specifications of claims, also of those that templates make.

use keelson_api::core::v1::PersistentVolumeClaimSpec;
use keelson_machinery::field::BadValue;
use keelson_machinery::quantity::Quantity;

use crate::faults::{self, Faults, given};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const STORAGE: &str = "storage";

/// What is let through because it is stored already.
#[derive(Default)]
pub struct ClaimOptions {
    bad_selector_values: bool,
    bad_source_groups: bool,
}

impl ClaimOptions {
    /// What is let through because `old` has it.
    pub fn of(old: &PersistentVolumeClaimSpec) -> ClaimOptions {
        let source = old.data_source.as_ref().and_then(|source| source.api_group.as_ref());
        let reference = old
            .data_source_ref
            .as_ref()
            .and_then(|source| source.api_group.as_ref());
        ClaimOptions {
            bad_selector_values: faults::are_in(|f| f.selector("", old.selector.as_deref())),
            bad_source_groups: source.or(reference).is_some(),
        }
    }
}

/// Checks a specification.
pub fn check_spec(f: &mut Faults<'_>, spec: &PersistentVolumeClaimSpec, options: &ClaimOptions) {
    f.at("accessModes")
        .required_if(spec.access_modes.is_empty(), "at least 1 access mode is required");
    f.selector_as_stored("selector", spec.selector.as_deref(), options.bad_selector_values);
    access_modes(&mut f.at("accessModes"), &spec.access_modes);
    let mut resources = f.at("resources");
    let mut storage = resources.key(STORAGE);
    match spec.resources.requests.get(STORAGE) {
        None => storage.required(""),
        Some(amount) => above_zero(&mut storage, amount),
    }
    f.at("storageClassName").subdomain(given(&spec.storage_class_name));
    volume_mode(f, spec.volume_mode.as_deref());
    sources(f, spec, options);
    f.at("volumeAttributesClassName")
        .subdomain(given(&spec.volume_attributes_class_name));
}

/// Ways in which nodes may use a volume; one of them goes with no other.
pub fn access_modes(f: &mut Faults<'_>, modes: &[String]) {
    modes.iter().for_each(|mode| f.one_of(mode, &MODES));
    let of_one_pod = |mode: &&String| *mode == "ReadWriteOncePod";
    let has_others = modes
        .iter()
        .any(|mode| !of_one_pod(&mode) && MODES.contains(&mode.as_str()));
    if has_others && modes.iter().any(|mode| of_one_pod(&mode)) {
        f.forbidden("may not use ReadWriteOncePod with other access modes");
    }
}

/// Whether a volume comes as a device or with files.
pub fn volume_mode(f: &mut Faults<'_>, mode: Option<&str>) {
    f.at("volumeMode").one_of(mode, &["Block", "Filesystem"]);
}

/// An amount above 0.
pub fn above_zero(f: &mut Faults<'_>, amount: &Quantity) {
    if amount.is_zero() || amount.is_negative() {
        f.invalid(amount.as_str(), "must be greater than zero");
    }
}

/// An amount that is not below 0, once rounded.
pub fn basic_amount(f: &mut Faults<'_>, amount: &Quantity) {
    if amount.value() < 0 {
        f.invalid(amount.value(), "must be a valid resource quantity");
    }
}

/// What a volume is filled from; the two fields say the same.
fn sources(f: &mut Faults<'_>, spec: &PersistentVolumeClaimSpec, options: &ClaimOptions) {
    let check = |f: &mut Faults<'_>, group: Option<&str>, kind: &str, name: &str| {
        f.at("name").filled(name);
        f.at("kind").filled(kind);
        match group.unwrap_or_default() {
            "" if kind != "PersistentVolumeClaim" => {
                let text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
                f.invalid(kind, text);
            }
            "" => {}
            group if !options.bad_source_groups => f.at("apiGroup").subdomain(group),
            _ => {}
        }
    };
    let (source, reference) = (spec.data_source.as_deref(), spec.data_source_ref.as_deref());
    f.some("dataSource", source, |f, source| {
        check(f, source.api_group.as_deref(), &source.kind, &source.name);
    });
    let namespace = reference
        .and_then(|of| of.namespace.as_deref())
        .filter(|name| !name.is_empty());
    f.some("dataSourceRef", reference, |f, reference| {
        check(f, reference.api_group.as_deref(), &reference.kind, &reference.name);
        if let Some(namespace) = namespace {
            f.at("namespace").label(namespace);
        }
    });
    let (Some(source), Some(reference)) = (source, reference) else {
        return;
    };
    let is_same =
        (&source.api_group, &source.kind, &source.name) == (&reference.api_group, &reference.kind, &reference.name);
    let text = match namespace {
        Some(_) => "may not be specified when dataSourceRef.namespace is specified",
        None if !is_same => "must match dataSourceRef",
        None => return,
    };
    f.invalid(BadValue::json("{}"), text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{lines, read};

    #[test]
    fn a_claim_asks_for_storage() {
        let good = r#""accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}"#;
        for (spec, expected) in [
            (format!("{{{good}}}"), ""),
            (
                r#"{"accessModes":["ReadWriteOncePod","ReadWriteMany","x"],"resources":{"requests":{"storage":"0"}}}"#
                    .to_owned(),
                "spec.accessModes: Unsupported value: \"x\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \
                 \"ReadWriteOnce\", \"ReadWriteOncePod\"\n\
                 spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes\n\
                 spec.resources[storage]: Invalid value: \"0\": must be greater than zero",
            ),
            (
                "{}".to_owned(),
                "spec.accessModes: Required value: at least 1 access mode is required\n\
                 spec.resources[storage]: Required value",
            ),
            (
                format!(r#"{{{good},"dataSource":{{"kind":"x"}}}}"#),
                "spec.dataSource.name: Required value\n\
                 spec.dataSource: Invalid value: \"x\": must be 'PersistentVolumeClaim' when referencing the default \
                 apiGroup",
            ),
        ] {
            let found = faults::of_spec(|f| check_spec(f, &read(&spec), &ClaimOptions::default()));
            assert_eq!(lines(&found), expected, "{spec}");
        }
    }
}
