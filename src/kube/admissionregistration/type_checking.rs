//! The status of ValidatingAdmissionPolicies: a controller that checks their expressions with the types of the objects
//! that they mean, as kube-controller-manager does where it runs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use keelson_admission::{CheckedKind, check_types};
use keelson_api::admissionregistration_k8s_io::v1::{
    ExpressionWarning, Rule, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};
use keelson_machinery::cel::Type;
use keelson_machinery::object::Gvk;
use keelson_machinery::reflect::Name;
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::status::StatusError;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};
use keelson_registry::{Client, NamespacedName, Registry};
use keelson_server::discovery::{Catalog, Served};
use keelson_server::openapi::Schemas;
use serde_json::{Value, json};

use super::GROUP;

const POLICIES: &str = "validatingadmissionpolicies";
/// Kinds of one rule that are looked at.
const MOST: usize = 10;
/// How long a policy has to be left alone before it is checked: who is at work on it gets no conflicts.
const PATIENCE: Duration = Duration::from_secs(3);

/// Keeps the status of policies current.
pub struct PolicyTypeChecking {
    catalog: Arc<dyn Catalog>,
    schemas: Schemas,
    /// The resource versions of policies that are to be left alone for a while.
    waiting: RefCell<HashMap<NamespacedName, String>>,
}

impl PolicyTypeChecking {
    /// Checks with the types of what a catalog says.
    pub fn new(catalog: Arc<dyn Catalog>) -> PolicyTypeChecking {
        PolicyTypeChecking {
            schemas: Schemas::new(catalog.clone()),
            catalog,
            waiting: RefCell::default(),
        }
    }

    /// Whether a server has policies.
    pub fn has_policies(registry: &Registry) -> bool {
        registry.resource(GROUP, POLICIES).is_some()
    }

    /// Whether a policy is as it was a while ago.
    fn has_settled(&self, key: &NamespacedName, policy: &ValidatingAdmissionPolicy) -> bool {
        let version = &policy.metadata.resource_version;
        let mut waiting = self.waiting.borrow_mut();
        if waiting.get(key) == Some(version) {
            waiting.remove(key);
            return true;
        }
        waiting.insert(key.clone(), version.clone());
        false
    }

    /// What is to be told of a policy. Types that are objects have a number in their names, which makes them unique.
    fn warnings(&self, spec: &ValidatingAdmissionPolicySpec, number: u32) -> std::io::Result<Vec<ExpressionWarning>> {
        let kinds = self.kinds(spec);
        let params = spec.param_kind.as_deref().map(|kind| {
            let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
            Gvk::new(group, version, kind.kind.as_str())
        });
        let all: Vec<Gvk> = kinds.iter().chain(&params).cloned().collect();
        let types = self.schemas.of_kinds(&all)?.into_iter().zip(&all).map(|(found, gvk)| {
            let schema = found?;
            let name = format!("{}{number}", gvk.kind);
            Some(Type::of_definition(&name, &schema.definition, &schema.definitions))
        });
        let mut types: Vec<Option<Option<Type>>> = types.collect();
        let params = types.split_off(kinds.len()).pop().flatten().flatten();
        let known = kinds.into_iter().zip(types);
        let kinds: Vec<CheckedKind> = known
            .filter_map(|(gvk, object)| Some(CheckedKind { gvk, object: object? }))
            .collect();
        Ok(check_types(spec, &kinds, params.as_ref()))
    }

    /// The kinds that the rules of a policy name one by one, in order.
    fn kinds(&self, spec: &ValidatingAdmissionPolicySpec) -> Vec<Gvk> {
        let served = self.catalog.served();
        let constraints = spec.match_constraints.as_deref();
        let rules = constraints.into_iter().flat_map(|all| &all.resource_rules);
        let mut found: BTreeSet<(Name, Name, Name)> = BTreeSet::new();
        for rule in rules {
            let named = named(&served, &rule.rule_with_operations.rule);
            let is_full = named.len() >= MOST;
            found.extend(
                named
                    .into_iter()
                    .take(MOST)
                    .map(|gvk| (gvk.group, gvk.version, gvk.kind)),
            );
            if is_full {
                break;
            }
        }
        let gvk = |(group, version, kind)| Gvk { group, version, kind };
        found.into_iter().map(gvk).collect()
    }

    async fn settle(&self, client: &Client, policy: &ValidatingAdmissionPolicy) -> Result<(), Failure> {
        // As in kube-controller-manager the names of types end with the nanosecond in which they were made.
        let warnings = self.warnings(&policy.spec, client.now().subsec_nanos())?;
        match apply(client, policy, &warnings).await {
            // It was deleted meanwhile.
            Err(error) if error.code == 404 => Ok(()),
            done => Ok(done?),
        }
    }
}

impl Controller for PolicyTypeChecking {
    /// That of kube-controller-manager's queue.
    fn name(&self) -> &'static str {
        "validatingadmissionpolicy-status"
    }

    fn reconciles(&self) -> GroupResource {
        GroupResource::new(GROUP, POLICIES)
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        let found = context.typed_lister::<ValidatingAdmissionPolicy>()?.get(key).await?;
        let is_due = |policy: &ValidatingAdmissionPolicy| {
            let meta = &policy.metadata;
            meta.deletion_timestamp.is_none() && meta.generation > policy.status.observed_generation
        };
        let Some(policy) = found.filter(is_due) else {
            self.waiting.borrow_mut().remove(key);
            return Ok(Next::Done);
        };
        if !self.has_settled(key, &policy) {
            return Ok(Next::After(PATIENCE));
        }
        self.settle(context.client(), &policy).await?;
        Ok(Next::Done)
    }
}

/// The kinds that a rule names, with those that only their lists have: none where it means all groups or all versions.
/// Subresources, and what it means by a pattern, are left out. A resource of the legacy group is looked for in every
/// group, since clients take it for one of which the group is not said.
fn named(served: &Served, rule: &Rule) -> Vec<Gvk> {
    let is_pattern = |text: &String| text.contains('*');
    if rule.api_groups.iter().chain(&rule.api_versions).any(is_pattern) {
        return Vec::new();
    }
    let groups: BTreeSet<&str> = rule.api_groups.iter().map(String::as_str).collect();
    let versions: BTreeSet<&str> = rule.api_versions.iter().map(String::as_str).collect();
    let resources: BTreeSet<String> = rule.resources.iter().map(|resource| resource.to_lowercase()).collect();
    let known = |group: &&str| group.is_empty() || served.group(group).is_some();
    let mut found = Vec::new();
    for group in groups.into_iter().filter(known) {
        let of_group = served
            .groups
            .iter()
            .filter(|known| group.is_empty() || known.name == group);
        let of_group: Vec<_> = of_group.flat_map(|group| &group.versions).collect();
        let known: BTreeSet<&str> = of_group.iter().map(|version| version.version.as_str()).collect();
        for version in versions.intersection(&known) {
            let kinds = of_group.iter().filter(|known| known.version == *version);
            let kinds: Vec<&KindDesc> = kinds.flat_map(|known| &known.kinds).map(|kind| &**kind).collect();
            let names: BTreeMap<String, Vec<Gvk>> = by_name(&kinds);
            let asked = names.into_iter().filter(|(name, _)| resources.contains(name));
            found.extend(asked.flat_map(|(_, kinds)| kinds));
        }
    }
    found
}

/// Kinds by the names that clients know their resources by: plural and singular, and those that lists of them would
/// have.
fn by_name(kinds: &[&KindDesc]) -> BTreeMap<String, Vec<Gvk>> {
    let mut names: BTreeMap<String, Vec<Gvk>> = BTreeMap::new();
    for kind in kinds {
        let mut add = |name: &str, kind: Gvk| {
            let known = names.entry(name.to_lowercase()).or_default();
            if !known.contains(&kind) {
                known.push(kind);
            }
        };
        add(&kind.plural, kind.gvk());
        add(&kind.singular, kind.gvk());
        let list = format!("{}List", kind.kind);
        let of_lists = Gvk::new(kind.group.clone(), kind.version.clone(), list.as_str());
        add(&list, of_lists.clone());
        add(&format!("{list}s"), of_lists);
    }
    names
}

async fn apply(
    client: &Client,
    policy: &ValidatingAdmissionPolicy,
    warnings: &[ExpressionWarning],
) -> Result<(), StatusError> {
    let objects = client
        .of::<ValidatingAdmissionPolicy>("")?
        .subresource("status")?
        .objects;
    let told = |one: &ExpressionWarning| json!({"fieldRef": one.field_ref, "warning": one.warning});
    let told: Vec<Value> = warnings.iter().map(told).collect();
    let checked = match told.is_empty() {
        true => json!({}),
        false => json!({"expressionWarnings": told}),
    };
    let document = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy.metadata.name},
        "status": {"observedGeneration": policy.metadata.generation, "typeChecking": checked},
    });
    objects.apply(&policy.metadata.name, &document).await.map(drop)
}

#[cfg(test)]
mod tests;
