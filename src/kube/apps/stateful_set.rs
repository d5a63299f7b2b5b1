//! Stateful sets.

use std::borrow::Cow;
use std::collections::BTreeSet;

use keelson_api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use keelson_api::core::v1::{PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume, VolumeSource};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::selector::label::LabelSelector;
use keelson_registry::{Context, KindCode, Strategy};

use super::{rollout, workload};
use crate::cells;
use crate::core::{persistent_volume_claim, pod_spec};
use crate::faults::{self, Faults, given};
use crate::metadata;
use crate::typed::{is_new_generation, shown, shown_option};

const NAMES: workload::Names = workload::Names {
    selector: "statefulset",
    kind: "StatefulSet",
    unreadable: "",
};

const FIXED: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
    'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// Registers the rules of stateful sets.
pub fn register(code: &mut KindCode) {
    code.kind::<StatefulSet>()
        .strategy(StatefulSetStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::workload::STATEFUL_SET);
}

/// The rules of stateful sets.
struct StatefulSetStrategy;

impl Strategy for StatefulSetStrategy {
    type Object = StatefulSet;

    fn warnings(&self, new: &StatefulSet, old: Option<&StatefulSet>) -> Vec<String> {
        if !is_new_generation(new, old) {
            return Vec::new();
        }
        let path = Path::new("spec");
        let mut found = pod_spec::warnings::of_template(&new.spec.template, &path.child("template"));
        for (place, claim) in new.spec.volume_claim_templates.iter().enumerate() {
            // The paths are those of the API, which differ from that of the field.
            let path = path.child("volumeClaimTemplates").index(place);
            let path = if old.is_some() { path.child("Spec") } else { path };
            found.extend(persistent_volume_claim::warnings_of_spec(&claim.spec, &path));
        }
        if new.spec.revision_history_limit.is_some_and(|limit| limit < 0) {
            let text = "a negative value retains all historical revisions; a value >= 0 is recommended";
            found.push(format!("spec.revisionHistoryLimit: {text}"));
        }
        found
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut StatefulSet) {
        drop_disabled(object, None);
        pod_spec::disabled::drop_from_template(&mut object.spec.template, None);
    }

    fn prepare_for_update(&self, _context: &Context, new: &mut StatefulSet, old: &StatefulSet) {
        drop_disabled(new, Some(old));
        pod_spec::disabled::drop_from_template(&mut new.spec.template, Some(&old.spec.template));
    }

    fn fill_bookmark(&self, object: &mut StatefulSet) {
        object.spec.replicas = Some(0);
    }

    fn validate(&self, _context: &Context, new: &StatefulSet, old: Option<&StatefulSet>) -> ErrorList {
        let Some(old) = old.map(|old| &old.spec) else {
            return faults::of_spec(|f| check(f, &new.spec, Extent::ALL, None));
        };
        let of_old = faults::of_object(|f| check(f, old, Extent::CHANGEABLE, Some(old)));
        let extent = Extent {
            template: of_old.is_empty(),
            ..Extent::CHANGEABLE
        };
        faults::of_spec(|f| {
            check(f, &new.spec, extent, Some(old));
            let is_kept = equality::equal(&with_allowed_changes_undone(&new.spec, old), old);
            f.forbidden_if(!is_kept, FIXED);
        })
    }

    fn validate_status_update(&self, _context: &Context, new: &StatefulSet, old: &StatefulSet) -> ErrorList {
        faults::of_status(|f| {
            let status = &new.status;
            let of_all = [
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
            ];
            f.at("replicas").non_negative(status.replicas);
            f.counts(status, &of_all);
            f.counts(status, &["observedGeneration", "collisionCount"]);
            workload::parts(f, status, ("replicas", "status.replicas"), &of_all);
            workload::parts(
                f,
                status,
                ("readyReplicas", "status.readyReplicas"),
                &["availableReplicas"],
            );
            workload::collisions(f, status.collision_count, old.status.collision_count);
        })
    }
}

/// Defaults in code of stateful sets.
fn defaults(o: &mut StatefulSet) {
    pod_spec::of_template(&mut o.spec.template);
    let rollout = &mut o.spec.update_strategy;
    if rollout.r#type.is_empty() {
        rollout.r#type = "RollingUpdate".to_owned();
        rollout.rolling_update.get_or_insert_default();
    }
    if let Some(rolling) = rollout
        .rolling_update
        .as_mut()
        .filter(|_| rollout.r#type == "RollingUpdate")
    {
        rolling.partition.get_or_insert(0);
    }
}

fn with_allowed_changes_undone(new: &StatefulSetSpec, old: &StatefulSetSpec) -> StatefulSetSpec {
    let kept = new.clone();
    StatefulSetSpec {
        selector: kept.selector,
        volume_claim_templates: kept.volume_claim_templates,
        service_name: kept.service_name,
        pod_management_policy: kept.pod_management_policy,
        ..old.clone()
    }
}

/// Which parts of a specification are looked at: those that never change may have been stored before they were checked.
#[derive(Clone, Copy)]
struct Extent {
    template: bool,
    fixed: bool,
}

impl Extent {
    const ALL: Extent = Extent {
        template: true,
        fixed: true,
    };
    const CHANGEABLE: Extent = Extent {
        template: true,
        fixed: false,
    };
}

fn check(f: &mut Faults<'_>, spec: &StatefulSetSpec, extent: Extent, old: Option<&StatefulSetSpec>) {
    let is_known = matches!(&*spec.pod_management_policy, "OrderedReady" | "Parallel");
    f.at("podManagementPolicy").invalid_if(
        !is_known,
        &spec.pod_management_policy,
        "must be 'OrderedReady' or 'Parallel'",
    );
    check_rollout(&mut f.at("updateStrategy"), &spec.update_strategy);
    if let Some(policy) = spec.persistent_volume_claim_retention_policy.as_deref() {
        let mut f = f.at("persistentVolumeClaimRetentionPolicy");
        f.at("whenDeleted").one_of(&policy.when_deleted, &["Retain", "Delete"]);
        f.at("whenScaled").one_of(&policy.when_scaled, &["Retain", "Delete"]);
    }
    if extent.fixed {
        f.each("volumeClaimTemplates", &spec.volume_claim_templates, |f, claim| {
            persistent_volume_claim::check_spec(&mut f.at("spec"), &claim.spec, &Default::default());
        });
    }
    f.counts(spec, &["replicas", "minReadySeconds"]);
    let start = spec.ordinals.as_ref().map(|ordinals| ordinals.start);
    f.at("ordinals").at("start").non_negative(start);
    if extent.fixed {
        f.at("serviceName").label(given(&spec.service_name));
    }
    workload::selector_alone(f, spec.selector.as_deref(), &NAMES);
    check_template(f, spec, extent, old);
}

fn check_template(f: &mut Faults<'_>, spec: &StatefulSetSpec, extent: Extent, old: Option<&StatefulSetSpec>) {
    let (selector, template) = (spec.selector.as_deref(), &spec.template);
    if LabelSelector::from_message(selector).is_err() {
        f.at("selector").invalid(shown_option(selector), NAMES.unreadable);
    } else {
        workload::selects(f, selector, template);
        if extent.template {
            let old = old.map(|old| &old.template);
            pod_spec::check_template(&mut f.at("template"), &as_of_a_pod(spec), old);
        }
        // What is said of the template itself is looked at twice.
        let mut f = f.at("template");
        f.labels("labels", &template.metadata.labels);
        f.annotations("annotations", &template.metadata.annotations);
        let old = old.map(|old| &old.template.metadata);
        pod_spec::annotations::check(&mut f, &template.metadata, &template.spec, old);
    }
    workload::runs_for_ever(&mut f.at("template"), template, NAMES.kind);
}

/// The template as its pods will be: their names in DNS are given to them, and so are the volumes that they claim.
fn as_of_a_pod(spec: &StatefulSetSpec) -> Cow<'_, PodTemplateSpec> {
    let template = &spec.template;
    let claims = &spec.volume_claim_templates;
    if template.spec.subdomain.is_empty() && template.spec.hostname.is_empty() && claims.is_empty() {
        return Cow::Borrowed(template);
    }
    let mut template = template.clone();
    template.spec.subdomain.clear();
    template.spec.hostname.clear();
    let made: BTreeSet<&str> = claims.iter().map(|claim| claim.metadata.name.as_str()).collect();
    let volumes = made.iter().map(|name| Volume {
        name: (*name).to_owned(),
        volume_source: VolumeSource {
            persistent_volume_claim: Some(Box::new(PersistentVolumeClaimVolumeSource {
                claim_name: (*name).to_owned(),
                read_only: false,
            })),
            ..VolumeSource::default()
        },
    });
    let others = template
        .spec
        .volumes
        .iter()
        .filter(|volume| !made.contains(volume.name.as_str()));
    template.spec.volumes = volumes.chain(others.cloned()).collect();
    Cow::Owned(template)
}

fn check_rollout(f: &mut Faults<'_>, rollout: &StatefulSetUpdateStrategy) {
    let rolling = rollout.rolling_update.as_deref();
    match rollout.r#type.as_str() {
        "" => f.required(""),
        "OnDelete" => f.some("rollingUpdate", rolling, |f, rolling| {
            f.invalid(shown(rolling), "only allowed for updateStrategy 'RollingUpdate'");
        }),
        "RollingUpdate" => f.some("rollingUpdate", rolling, |f, rolling| {
            f.at("partition").non_negative(rolling.partition);
            let bound = rolling.max_unavailable.as_ref();
            f.some("maxUnavailable", bound, |f, bound| {
                rollout::positive_or_percent(f, bound);
                f.invalid_if(
                    rollout::is_zero(Some(bound)),
                    rollout::shown(Some(bound)),
                    "cannot be 0",
                );
                rollout::at_most_all(f, bound);
            });
        }),
        _ => f.invalid(shown(rollout), "must be 'RollingUpdate' or 'OnDelete'"),
    }
}

/// How many pods may be away at once is told by a feature that is not enabled; what was stored stays.
fn drop_disabled(o: &mut StatefulSet, old: Option<&StatefulSet>) {
    let rolling = |o: &StatefulSet| o.spec.update_strategy.rolling_update.clone();
    if old.and_then(rolling).is_some_and(|r| r.max_unavailable.is_some()) {
        return;
    }
    if let Some(rolling) = &mut o.spec.update_strategy.rolling_update {
        rolling.max_unavailable = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read_defaulted, text};

    fn stateful_set(more: &str) -> StatefulSet {
        let mut o = read_defaulted(&format!(
            r#"{{"spec":{{"selector":{{"matchLabels":{{"f":"z"}}}},"template":{{"metadata":{{"labels":{{"f":"z"}}}},
            "spec":{{"containers":[{{"image":"x","name":"c"}}]}}}}{more}}}}}"#
        ));
        defaults(&mut o);
        o
    }

    #[test]
    fn the_rollout_has_a_partition() {
        let partition = r#"{"type":"RollingUpdate","rollingUpdate":{"partition":0}}"#;
        for (given, expected) in [
            ("{}", partition),
            (r#"{"type":"OnDelete"}"#, r#"{"type":"OnDelete"}"#),
            (r#"{"type":"RollingUpdate"}"#, r#"{"type":"RollingUpdate"}"#),
            (
                r#"{"rollingUpdate":{"partition":2}}"#,
                r#"{"type":"RollingUpdate","rollingUpdate":{"partition":2}}"#,
            ),
        ] {
            let o = stateful_set(&format!(r#","updateStrategy":{given}"#));
            assert_eq!(text(&o.spec.update_strategy), expected);
        }
    }

    #[test]
    fn few_fields_change() {
        let old = stateful_set("");
        let check = |new: &StatefulSet| lines(&StatefulSetStrategy.validate(&context(), new, Some(&old)));
        let mut new = stateful_set(r#","replicas":3,"minReadySeconds":5,"ordinals":{"start":1}"#);
        new.spec.template.spec.containers[0].image = "y".to_owned();
        assert_eq!(check(&new), "");
        assert_eq!(
            check(&stateful_set(r#","serviceName":"a""#)),
            format!("spec: Forbidden: {FIXED}")
        );
        let new = stateful_set(r#","updateStrategy":{"type":"OnDelete","rollingUpdate":{"partition":1}}"#);
        assert_eq!(
            check(&new),
            "spec.updateStrategy.rollingUpdate: Invalid value: {\"partition\":1}: only allowed for updateStrategy \
             'RollingUpdate'"
        );
    }
}
