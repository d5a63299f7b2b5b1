//! Reconciliation of default roles and bindings that are there already: what they lack is put in, what somebody has
//! added stays, and an annotation keeps hands off altogether.

use std::collections::BTreeMap;

use keelson_access::authz::rbac::{Rule, missing_rules};
use keelson_api::rbac_authorization_k8s_io::v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject,
};
use keelson_machinery::equality;
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_machinery::reflect::Reflect;

use crate::rbac::to_rules;
use crate::typed::typed;

/// Objects whose annotation of this name says `false` are left alone.
const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

pub fn role(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    reconciled::<Role>(stored, wanted, |new, wanted| add_rules(&mut new.rules, &wanted.rules))
}

pub fn cluster_role(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    reconciled::<ClusterRole>(stored, wanted, |new, wanted| match &wanted.aggregation_rule {
        // The rules are those that were collected.
        Some(wanted) => add_selectors(&mut new.aggregation_rule, wanted),
        None => add_rules(&mut new.rules, &wanted.rules),
    })
}

/// A binding of another role cannot be changed into the wanted one; it is left to whoever made it so.
pub fn cluster_role_binding(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    reconciled::<ClusterRoleBinding>(stored, wanted, |new, wanted| {
        if equality::equal(&new.role_ref, &wanted.role_ref) {
            add_subjects(&mut new.subjects, &wanted.subjects);
        }
    })
}

/// As [`cluster_role_binding`].
pub fn role_binding(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    reconciled::<RoleBinding>(stored, wanted, |new, wanted| {
        if equality::equal(&new.role_ref, &wanted.role_ref) {
            add_subjects(&mut new.subjects, &wanted.subjects);
        }
    })
}

fn reconciled<T: Object + Reflect>(
    stored: &dyn Object,
    wanted: &dyn Object,
    change: fn(&mut T, &T),
) -> Option<Box<dyn Object>> {
    if stored.meta().annotations.get(AUTOUPDATE).is_some_and(|v| v == "false") {
        return None;
    }
    let mut new = stored.clone_object();
    change(new.downcast_mut::<T>()?, typed::<T>(wanted)?);
    add_texts(new.meta_mut(), wanted.meta());
    (!equality::equal(new.as_reflect(), stored.as_reflect())).then_some(new)
}

/// Labels and annotations; what is there wins.
fn add_texts(new: &mut ObjectMeta, wanted: &ObjectMeta) {
    let add = |new: &mut BTreeMap<String, String>, wanted: &BTreeMap<String, String>| {
        for (key, value) in wanted {
            new.entry(key.clone()).or_insert_with(|| value.clone());
        }
    };
    add(&mut new.labels, &wanted.labels);
    add(&mut new.annotations, &wanted.annotations);
}

fn add_rules(new: &mut Vec<PolicyRule>, wanted: &[PolicyRule]) {
    let missing = missing_rules(&to_rules(new), &to_rules(wanted));
    new.extend(missing.into_iter().map(from_rule));
}

fn from_rule(rule: Rule) -> PolicyRule {
    PolicyRule {
        verbs: rule.verbs,
        api_groups: rule.groups,
        resources: rule.resources,
        resource_names: rule.names,
        non_resource_urls: rule.paths,
    }
}

fn add_selectors(new: &mut Option<Box<AggregationRule>>, wanted: &AggregationRule) {
    let new = &mut new.get_or_insert_default().cluster_role_selectors;
    for selector in &wanted.cluster_role_selectors {
        if !new.iter().any(|known| equality::equal(known, selector)) {
            new.push(selector.clone());
        }
    }
}

fn add_subjects(new: &mut Vec<Subject>, wanted: &[Subject]) {
    for subject in wanted {
        if !new.iter().any(|known| equality::equal(known, subject)) {
            new.push(subject.clone());
        }
    }
}
