//! The check of a request against the quotas of its namespace: which of them it concerns, and what it takes of each.

use std::collections::BTreeSet;

use keelson_api::core::v1::{ResourceQuota, ScopedResourceSelectorRequirement as Selector};
use keelson_machinery::object::Kind;
use keelson_machinery::time::Time;

use super::amounts::{Amounts, add, grown, of_names, text, without_zeros};
use super::configuration::LimitedResource;
use super::evaluator::{Evaluator, OperatorError};

/// A request to be counted.
pub struct Request<'a> {
    /// The group of the resource.
    pub group: &'a str,
    /// The plural of the resource.
    pub plural: &'a str,
    /// As it is to be.
    pub object: &'a dyn Kind,
    /// `None`: it is new.
    pub old: Option<&'a dyn Kind>,
    /// When it came.
    pub now: Time,
}

/// What a request takes of one quota.
#[derive(Clone, PartialEq, Debug)]
pub struct Taken {
    /// The name of the quota.
    pub quota: String,
    /// Of the resources that it bounds.
    pub amounts: Amounts,
}

/// Why a request is refused.
#[derive(PartialEq, Debug)]
pub enum Refusal {
    /// 403 in the name of the object.
    Forbidden(String),
    /// An error without a code of its own.
    Other(String),
}

/// What a request takes of the quotas that it concerns, in their order.
///
/// # Errors
/// It may not be made, whatever is left of the quotas.
pub fn check(
    evaluator: &Evaluator<'_>,
    quotas: &[impl AsRef<ResourceQuota>],
    limited: &[LimitedResource],
    request: &Request<'_>,
) -> Result<Vec<Taken>, Refusal> {
    let Ok(limited_scopes) = limited_scopes(evaluator, limited, request) else {
        // As in kube-apiserver, a selector that can't be read bounds nothing.
        return Ok(Vec::new());
    };
    let usage = evaluator.usage(request.object, request.now);
    let limited = limited_names(&usage, limited, request);
    let found = Found::among(evaluator, quotas, request)?;
    let negative: Vec<&str> = usage
        .iter()
        .filter(|(_, amount)| amount.is_negative())
        .map(|(name, _)| &**name)
        .collect();
    if !negative.is_empty() {
        let names = negative.join(",");
        return Err(Refusal::Forbidden(format!(
            "quota usage is negative for resource(s): {names}"
        )));
    }
    let delta = match request.old {
        None => usage.clone(),
        Some(old) => grown(&usage, &evaluator.usage(old, request.now)),
    };
    let mut taken = Vec::new();
    for quota in &found.quotas {
        let was_counted = match request.old {
            Some(old) => matches(evaluator, quota, old).map_err(|error| Refusal::Other(error.to_string()))?,
            None => false,
        };
        let amounts = without_zeros(if was_counted { delta.clone() } else { usage.clone() });
        if !amounts.is_empty() {
            taken.push((quota, amounts));
        }
    }
    let takes_nothing = match found.quotas.is_empty() {
        true => without_zeros(delta).is_empty(),
        false => taken.is_empty(),
    };
    if takes_nothing {
        return Ok(Vec::new());
    }
    uncovered(&limited, &limited_scopes, &found)?;
    let taken = taken.into_iter().map(|(quota, amounts)| Taken {
        quota: quota.metadata.name.clone(),
        amounts: of_names(&amounts, quota.status.hard.keys()),
    });
    Ok(taken.filter(|taken| !taken.amounts.is_empty()).collect())
}

/// The quotas that a request concerns.
struct Found<'a> {
    quotas: Vec<&'a ResourceQuota>,
    /// The resources that they bound.
    names: BTreeSet<&'a str>,
    /// The scopes that it is in, of all quotas.
    scopes: BTreeSet<String>,
}

impl<'a> Found<'a> {
    fn among(
        evaluator: &Evaluator<'_>,
        quotas: &'a [impl AsRef<ResourceQuota>],
        request: &Request<'_>,
    ) -> Result<Found<'a>, Refusal> {
        let mut found = Found {
            quotas: Vec::new(),
            names: BTreeSet::new(),
            scopes: BTreeSet::new(),
        };
        for quota in quotas.iter().map(AsRef::as_ref) {
            found.look_at(evaluator, quota, request)?;
        }
        Ok(found)
    }

    fn look_at(
        &mut self,
        evaluator: &Evaluator<'_>,
        quota: &'a ResourceQuota,
        request: &Request<'_>,
    ) -> Result<(), Refusal> {
        let name = &quota.metadata.name;
        for selector in scopes(quota) {
            let is_in = evaluator.is_in_scope(&selector, request.object).map_err(|why| {
                let scope = shown(&selector);
                Refusal::Other(format!(
                    "error matching scopes of quota {name}, err: error on matching scope {scope}: {why}"
                ))
            })?;
            if is_in && evaluator.has_scopes() {
                self.scopes.insert(selector.scope_name);
            }
        }
        if !matches(evaluator, quota, request.object).map_err(|error| Refusal::Other(error.to_string()))? {
            return Ok(());
        }
        let bounded: Vec<&String> = quota
            .status
            .hard
            .keys()
            .filter(|name| evaluator.concerns(name))
            .collect();
        if let Some(why) = evaluator.constraint(&bounded, request.object) {
            return Err(Refusal::Forbidden(format!("failed quota: {name}: {why}")));
        }
        if bounded
            .iter()
            .any(|resource| !quota.status.used.contains_key(*resource))
        {
            let names: Vec<&str> = bounded.iter().map(|name| name.as_str()).collect();
            let names = names.join(",");
            return Err(Refusal::Forbidden(format!(
                "status unknown for quota: {name}, resources: {names}"
            )));
        }
        self.quotas.push(quota);
        self.names.extend(bounded.iter().map(|name| name.as_str()));
        Ok(())
    }
}

/// The selectors of a quota's scopes.
fn scopes(quota: &ResourceQuota) -> Vec<Selector> {
    let named = quota.spec.scopes.iter().map(|scope| Selector {
        scope_name: scope.clone(),
        operator: "Exists".to_owned(),
        values: Vec::new(),
    });
    let selected = quota.spec.scope_selector.as_deref();
    let selected = selected.into_iter().flat_map(|selector| &selector.match_expressions);
    named.chain(selected.cloned()).collect()
}

/// Whether a quota bounds something that an object uses, and the object is in all of its scopes.
fn matches(evaluator: &Evaluator<'_>, quota: &ResourceQuota, object: &dyn Kind) -> Result<bool, OperatorError> {
    let mut is_in = true;
    for selector in scopes(quota) {
        is_in &= evaluator.is_in_scope(&selector, object)?;
    }
    Ok(is_in && quota.status.hard.keys().any(|name| evaluator.concerns(name)))
}

/// The scopes of configured limits that an object is in.
fn limited_scopes(
    evaluator: &Evaluator<'_>,
    limited: &[LimitedResource],
    request: &Request<'_>,
) -> Result<Vec<Selector>, OperatorError> {
    let mut found = Vec::new();
    for selector in limited.iter().flat_map(|limit| &limit.match_scopes) {
        if evaluator.has_scopes() && evaluator.is_in_scope(selector, request.object)? {
            found.push(selector.clone());
        }
    }
    Ok(found)
}

/// The resources that an object may use only where a quota says so.
fn limited_names(usage: &Amounts, limited: &[LimitedResource], request: &Request<'_>) -> BTreeSet<String> {
    let of_resource = limited
        .iter()
        .filter(|limit| (&*limit.group, &*limit.resource) == (request.group, request.plural));
    let parts: Vec<&String> = of_resource.flat_map(|limit| &limit.match_contains).collect();
    let used = usage
        .iter()
        .filter(|(_, amount)| !amount.is_zero() && !amount.is_negative());
    let named = used
        .map(|(name, _)| name)
        .filter(|name| parts.iter().any(|part| name.contains(part.as_str())));
    named.cloned().collect()
}

fn uncovered(limited: &BTreeSet<String>, scopes: &[Selector], found: &Found<'_>) -> Result<(), Refusal> {
    let names: Vec<&str> = limited
        .iter()
        .map(String::as_str)
        .filter(|name| !found.names.contains(name))
        .collect();
    if !names.is_empty() {
        let names = names.join(",");
        return Err(Refusal::Forbidden(format!("insufficient quota to consume: {names}")));
    }
    let scopes: Vec<String> = scopes
        .iter()
        .filter(|selector| !found.scopes.contains(&selector.scope_name))
        .map(shown)
        .collect();
    match scopes.is_empty() {
        true => Ok(()),
        false => Err(Refusal::Other(format!(
            "insufficient quota to match these scopes: [{}]",
            scopes.join(" ")
        ))),
    }
}

/// As Go prints it.
fn shown(selector: &Selector) -> String {
    let (scope, operator) = (&selector.scope_name, &selector.operator);
    format!("{{{scope} {operator} [{}]}}", selector.values.join(" "))
}

/// More than a quota leaves, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")]
pub struct Exceeded {
    quota: String,
    requested: String,
    used: String,
    limited: String,
}

/// What a quota has used when this is taken too.
///
/// # Errors
/// It is more than there is.
pub fn take(quota: &ResourceQuota, amounts: &Amounts, is_bounded: bool) -> Result<Amounts, Exceeded> {
    let (status, name) = (&quota.status, &quota.metadata.name);
    let wanted = of_names(amounts, status.hard.keys());
    let mut used = status.used.clone();
    add(&mut used, &wanted);
    let exceeds = |resource: &&String| used.get(*resource) > status.hard.get(*resource);
    let exceeded: Vec<&String> = wanted.keys().filter(exceeds).collect();
    if exceeded.is_empty() || !is_bounded {
        return Ok(used);
    }
    let of = |amounts: &Amounts| text(&of_names(amounts, exceeded.iter().copied()));
    Err(Exceeded {
        quota: name.clone(),
        requested: of(&wanted),
        used: of(&status.used),
        limited: of(&status.hard),
    })
}

#[cfg(test)]
mod tests;
