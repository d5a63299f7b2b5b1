//! Pruning: fields that go because their manager no longer applies them.

use super::remove::{remove, unowned, with_parents};
use super::{Apply, fields_of};
use crate::fieldset::FieldSet;
use crate::managedfields::{Managed, Owner, VersionError};
use crate::reflect::Reflect;
use crate::reflect::copy;
use crate::reflect::object::Object;

/// Takes out of `target` what `last`, the writer's entry so far, has, what `fields` have no longer, and what nobody
/// else owns in any version. Returns what was taken out.
pub(super) fn prune(
    apply: &Apply<'_>,
    managed: &Managed,
    last: &Owner,
    fields: &FieldSet,
    target: &mut dyn Reflect,
) -> Result<FieldSet, VersionError> {
    let version = &apply.writer.api_version;
    let others: Vec<&Owner> = managed.owners().iter().filter(|o| !o.is_same(last)).collect();
    let dropped = match last.api_version == *version {
        true => last.fields().uncovered(fields),
        false => last.fields().clone(),
    };
    if dropped.is_empty() {
        return Ok(FieldSet::EMPTY);
    }
    if last.api_version == *version && others.iter().all(|o| o.api_version == *version) {
        let mut owned: Vec<&FieldSet> = others.iter().map(|o| o.fields()).collect();
        owned.push(fields);
        let gone = unowned(target.desc(), &dropped, &owned);
        remove(target, &gone);
        return Ok(gone);
    }
    prune_versions(apply, &others, last, fields, target)
}

/// The same where owners speak of several versions: what each owns is looked up in its own.
fn prune_versions(
    apply: &Apply<'_>,
    others: &[&Owner],
    last: &Owner,
    fields: &FieldSet,
    target: &mut dyn Reflect,
) -> Result<FieldSet, VersionError> {
    let versions = apply.versions;
    if !versions.knows(&last.api_version) {
        return Ok(FieldSet::EMPTY);
    }
    let mut owned: Vec<(&str, FieldSet)> = vec![(&last.api_version, FieldSet::EMPTY)];
    let own = (apply.writer.api_version.as_str(), fields);
    for (version, fields) in others.iter().map(|o| (o.api_version.as_str(), o.fields())).chain([own]) {
        match owned.iter_mut().find(|(v, _)| *v == version) {
            Some((_, all)) => *all = std::mem::take(all).union(fields.clone()),
            None => owned.push((version, fields.clone())),
        }
    }
    let merged = versions.convert(target, &last.api_version)?;
    let before = with_parents(merged.desc(), last.fields());
    let mut pruned = merged.clone_object();
    remove(pruned.as_reflect_mut(), &before);
    let mut whole = merged.clone_object();
    for (version, owned) in owned.iter().filter(|(v, _)| versions.knows(v)) {
        whole = versions.convert(whole.as_reflect(), version)?;
        let kept = versions.convert(pruned.as_reflect(), version)?;
        let owned = with_parents(whole.desc(), owned);
        let gone = parents_of(&*whole).difference(&parents_of(&*kept)).difference(&owned);
        pruned = whole.clone_object();
        remove(pruned.as_reflect_mut(), &gone);
    }
    let kept = versions.convert(pruned.as_reflect(), &last.api_version)?;
    let gone = parents_of(&*merged)
        .difference(&parents_of(&*kept))
        .intersection(&before);
    let mut result = merged;
    remove(result.as_reflect_mut(), &gone);
    let result = versions.convert(result.as_reflect(), &apply.writer.api_version)?;
    for index in 0..target.desc().fields.len() {
        copy::copy_field(target, result.as_reflect(), index);
    }
    Ok(gone)
}

fn parents_of(object: &dyn Object) -> FieldSet {
    with_parents(object.desc(), &fields_of(object.as_reflect()))
}
