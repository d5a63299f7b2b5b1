//! Resources that containers and whole pods ask for and are held to.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::core::v1::{Container, PodSpec, ResourceClaim, ResourceRequirements};
use keelson_machinery::quantity::Quantity;

use super::Options;
use crate::core::resource_check::{self, may_be_overcommitted};
use crate::core::resource_name::is_huge_pages;
use crate::faults::Faults;

type Amounts = BTreeMap<String, Quantity>;

/// Checks what a container asks for. `claims`: names of the pod's claims.
pub fn of_container(f: &mut Faults<'_>, of: &ResourceRequirements, claims: &BTreeSet<&str>, options: &Options) {
    requirements(f, of, resource_check::of_container, options);
    claim_names(f, &of.claims, claims);
}

/// Checks what is set aside for a pod beside its containers.
pub fn overhead(f: &mut Faults<'_>, overhead: &Amounts, options: &Options) {
    if overhead.is_empty() {
        return;
    }
    let limits = ResourceRequirements {
        limits: overhead.clone(),
        ..ResourceRequirements::default()
    };
    requirements(f, &limits, resource_check::of_container, options);
}

fn requirements(
    f: &mut Faults<'_>,
    of: &ResourceRequirements,
    name_check: fn(&mut Faults<'_>, &str),
    options: &Options,
) {
    let each = |f: &mut Faults<'_>, name: &str, amount: &Quantity| {
        name_check(f, name);
        resource_check::amount(f, name, amount);
    };
    let pages = |f: &mut Faults<'_>, name: &str, amount: &Quantity| {
        if is_huge_pages(name) && !options.indivisible_huge_pages {
            resource_check::huge_pages(f, name, amount);
        }
    };
    f.each_key("limits", &of.limits, |f, name, amount| {
        each(f, name, amount);
        pages(f, name, amount);
    });
    for (name, request) in &of.requests {
        each(&mut f.at("requests").key(name), name, request);
        request_and_limit(f, name, request, of.limits.get(name));
        pages(&mut f.at("requests").key(name), name, request);
    }
    let has = |name: &str| of.limits.contains_key(name) || of.requests.contains_key(name);
    let mut names = of.limits.keys().chain(of.requests.keys());
    if !has("cpu") && !has("memory") && names.any(|name| is_huge_pages(name)) {
        f.forbidden("HugePages require cpu or memory");
    }
}

/// Nothing asks for more than it may use; of some things it asks for all that it may use.
fn request_and_limit(f: &mut Faults<'_>, name: &str, request: &Quantity, limit: Option<&Quantity>) {
    let is_flexible = may_be_overcommitted(name);
    let Some(limit) = limit else {
        f.at("limits")
            .required_if(!is_flexible, "Limit must be set for non overcommitable resources");
        return;
    };
    let what = match request {
        request if !is_flexible && request != limit => "equal to",
        request if request > limit => "less than or equal to",
        _ => return,
    };
    let text = format!("must be {what} {name} limit of {}", limit.as_str());
    f.at("requests").invalid(request.as_str(), text);
}

/// Each claim that a container uses is one of its pod, once as a whole or by some of its requests.
fn claim_names(f: &mut Faults<'_>, used: &[ResourceClaim], claims: &BTreeSet<&str>) {
    let (mut whole, mut parts) = (BTreeSet::new(), BTreeSet::new());
    f.each("claims", used, |f, claim| {
        let (name, request) = (claim.name.as_str(), claim.request.as_str());
        if !f.filled(name) {
            return;
        }
        if whole.contains(name) {
            f.duplicate(name);
        } else if request.is_empty() {
            parts
                .iter()
                .filter(|(of, _)| *of == name)
                .for_each(|_| f.duplicate(name));
            whole.insert(name);
        } else {
            f.at("request").label(request);
            if !parts.insert((name, request)) {
                f.duplicate(format!("{name}/{request}"));
            }
        }
        if !claims.contains(name) {
            let known: Vec<&str> = claims.iter().copied().collect();
            let known = match known.is_empty() {
                true => " which is empty".to_owned(),
                false => format!(": {}", known.join(", ")),
            };
            f.not_found(
                name,
                format!("must be one of the names in pod.spec.resourceClaims{known}"),
            );
        }
    });
}

/// Checks what the pod as a whole asks for.
pub fn of_pod(f: &mut Faults<'_>, spec: &PodSpec, options: &Options) {
    let Some(whole) = spec.resources.as_deref() else { return };
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return f.forbidden("may not be set for a windows pod");
    }
    if !whole.claims.is_empty() {
        f.at("claims")
            .forbidden("claims may not be set for Resources at pod-level");
    }
    requirements(f, whole, resource_check::of_pod, options);
    let claims = spec.resource_claims.iter().map(|claim| claim.name.as_str());
    claim_names(f, &whole.claims, &claims.filter(|name| !name.is_empty()).collect());
    consistency(f, spec, whole);
}

/// What the containers have together is no more than what the pod has.
fn consistency(f: &mut Faults<'_>, spec: &PodSpec, whole: &ResourceRequirements) {
    let at_least = |f: &mut Faults<'_>, what: &str, has: Option<&Quantity>, needed: &Quantity| {
        if let Some(has) = has.filter(|has| needed > *has) {
            let text = format!("must be greater than or equal to aggregate container {what} of {needed}");
            f.invalid(has.as_str(), text);
        }
    };
    for (name, needed) in &aggregate(spec, |resources| &resources.requests) {
        let mut f = f.at("requests");
        at_least(&mut f.key(name), "requests", whole.requests.get(name), needed);
    }
    let limits = aggregate(spec, |resources| &resources.limits);
    for (name, needed) in limits.iter().filter(|(name, _)| is_huge_pages(name)) {
        at_least(&mut f.at("limits").key(name), "limits", whole.limits.get(name), needed);
    }
    f.each("containers", &spec.containers, |f, container| {
        for (name, limit) in &container.resources.limits {
            if let Some(most) = whole.limits.get(name).filter(|most| limit > *most) {
                let text = format!("must be less than or equal to pod limits of {}", most.as_str());
                f.key(name).at("limits").invalid(limit.as_str(), text);
            }
        }
    });
}

/// What containers need together: the sum of those that run side by side, or more while one runs that comes before.
pub fn aggregate(spec: &PodSpec, amounts: fn(&ResourceRequirements) -> &Amounts) -> Amounts {
    let add = |sum: &mut Amounts, more: &Amounts| {
        for (name, amount) in more {
            let sum = sum.entry(name.clone()).or_default();
            *sum = sum.plus(amount);
        }
    };
    let raise = |most: &mut Amounts, other: &Amounts| {
        for (name, amount) in other {
            let most = most.entry(name.clone()).or_insert_with(|| amount.clone());
            if amount > most {
                most.clone_from(amount);
            }
        }
    };
    let mut sum = Amounts::new();
    spec.containers
        .iter()
        .for_each(|c| add(&mut sum, amounts(&c.resources)));
    let (mut beside, mut before) = (Amounts::new(), Amounts::new());
    for container in &spec.init_containers {
        let own = amounts(&container.resources);
        if is_restarted(container) {
            add(&mut sum, own);
            add(&mut beside, own);
            raise(&mut before, &beside);
        } else {
            let mut all = own.clone();
            add(&mut all, &beside);
            raise(&mut before, &all);
        }
    }
    raise(&mut sum, &before);
    sum
}

/// Whether an init container runs on beside the others.
pub fn is_restarted(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
