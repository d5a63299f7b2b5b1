//! The names of definitions: which of them a definition may have beside the others of its group.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::apiextensions_k8s_io::v1::{
    CustomResourceDefinition, CustomResourceDefinitionCondition as Condition, CustomResourceDefinitionNames,
};

use crate::conditions::{self, ESTABLISHED, NAMES_ACCEPTED, condition};

/// Names of a definition, those that it wants or has, to be compared.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub kind: String,
    pub list_kind: String,
    pub categories: Vec<String>,
}

impl From<&CustomResourceDefinitionNames> for Names {
    fn from(names: &CustomResourceDefinitionNames) -> Names {
        Names {
            plural: names.plural.clone(),
            singular: names.singular.clone(),
            short_names: names.short_names.clone(),
            kind: names.kind.clone(),
            list_kind: names.list_kind.clone(),
            categories: names.categories.clone(),
        }
    }
}

impl From<Names> for CustomResourceDefinitionNames {
    fn from(names: Names) -> CustomResourceDefinitionNames {
        CustomResourceDefinitionNames {
            plural: names.plural,
            singular: names.singular,
            short_names: names.short_names,
            kind: names.kind,
            list_kind: names.list_kind,
            categories: names.categories,
        }
    }
}

/// The names that definitions have been given, by their own name.
#[derive(Default)]
pub struct Accepted(BTreeMap<String, Claim>);

struct Claim {
    group: String,
    names: Names,
    /// It has not got all that it wants.
    waits: bool,
}

/// What a definition is told about its names.
pub struct Decision {
    /// Those that it has from now on.
    pub names: Names,
    pub accepted: Condition,
    pub established: Condition,
}

impl Accepted {
    /// Notes the names that a definition has by its status. Those that wait for others it has let go.
    pub fn note(&mut self, definition: &CustomResourceDefinition) -> Vec<String> {
        let (group, name) = (&definition.spec.group, &definition.metadata.name);
        let (wanted, names) = names_of(definition);
        let claim = Claim {
            group: group.clone(),
            waits: wanted != names,
            names,
        };
        let before = self.0.insert(name.clone(), claim);
        let is_same = |had: &Claim| self.0.get(name).is_some_and(|has| has.names == had.names);
        match before.as_ref().is_none_or(is_same) {
            true => Vec::new(),
            false => self.waiting(group, name),
        }
    }

    /// Lets go of the names of a definition that is not there any more; says who waits for some.
    pub fn release(&mut self, definition: &str) -> Vec<String> {
        match self.0.remove(definition) {
            Some(had) => self.waiting(&had.group, definition),
            None => Vec::new(),
        }
    }

    fn waiting(&self, group: &str, but: &str) -> Vec<String> {
        let waiting = self.0.iter().filter(|(_, claim)| claim.waits && claim.group == group);
        let names = waiting.map(|(name, _)| name.clone());
        names.filter(|name| name != but).collect()
    }

    /// What becomes of the names that a definition wants; `None`: nothing changes.
    pub fn decide(&self, definition: &CustomResourceDefinition) -> Option<Decision> {
        let (wanted, has) = names_of(definition);
        if wanted == has {
            return None;
        }
        let (names, accepted) = self.accept(&definition.spec.group, &wanted, &has);
        let known = conditions::find(definition, NAMES_ACCEPTED);
        if names == has && known.is_some_and(|known| conditions::says_same(known, &accepted)) {
            return None;
        }
        let established = established(definition, accepted.status == "True");
        Some(Decision {
            names,
            accepted,
            established,
        })
    }

    /// The names that are to be had, and what is said of those that are not.
    fn accept(&self, group: &str, wanted: &Names, has: &Names) -> (Names, Condition) {
        let (resources, kinds) = self.taken(group);
        let mut names = has.clone();
        let mut conflict = None;
        let mut take = |slot: &mut String, wanted: &str, taken: &BTreeSet<&str>, reason: &'static str| match *slot
            != wanted
            && taken.contains(wanted)
        {
            true => conflict = Some((reason, in_use(wanted))),
            false => wanted.clone_into(slot),
        };
        take(&mut names.plural, &wanted.plural, &resources, "PluralConflict");
        take(&mut names.singular, &wanted.singular, &resources, "SingularConflict");
        match unavailable(wanted, has, &resources) {
            None => names.short_names.clone_from(&wanted.short_names),
            Some(texts) => conflict = Some(("ShortNamesConflict", texts)),
        }
        let mut take =
            |slot: &mut String, wanted: &str, reason: &'static str| match *slot != wanted && kinds.contains(wanted) {
                true => conflict = Some((reason, in_use(wanted))),
                false => wanted.clone_into(slot),
            };
        take(&mut names.kind, &wanted.kind, "KindConflict");
        take(&mut names.list_kind, &wanted.list_kind, "ListKindConflict");
        names.categories.clone_from(&wanted.categories);
        let told = match conflict {
            Some((reason, message)) => condition(NAMES_ACCEPTED, false, reason, message),
            None => condition(NAMES_ACCEPTED, true, "NoConflicts", "no conflicts found"),
        };
        (names, told)
    }

    /// The names of resources and of kinds that are given in a group.
    fn taken(&self, group: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
        let claims = self.0.values().filter(|claim| claim.group == group);
        let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
        for Claim { names, .. } in claims {
            resources.extend([names.plural.as_str(), &names.singular]);
            resources.extend(names.short_names.iter().map(String::as_str));
            kinds.extend([names.kind.as_str(), &names.list_kind]);
        }
        (resources, kinds)
    }
}

/// Those that a definition wants, and those that it has.
fn names_of(definition: &CustomResourceDefinition) -> (Names, Names) {
    let (wanted, has) = (&definition.spec.names, &definition.status.accepted_names);
    (Names::from(wanted), Names::from(has))
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Those that are not to be had, as the condition says it; `None`: there are none.
fn unavailable(wanted: &Names, has: &Names, taken: &BTreeSet<&str>) -> Option<String> {
    let conflicts = |name: &&String| !has.short_names.contains(name) && taken.contains(name.as_str());
    let mut texts: Vec<String> = Vec::new();
    for text in wanted.short_names.iter().filter(conflicts).map(|name| in_use(name)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// What is said of whether it is established, beside whether its names are accepted. Once it is, it stays so.
fn established(definition: &CustomResourceDefinition, accepted: bool) -> Condition {
    let known = conditions::find(definition, ESTABLISHED);
    match known {
        Some(known) if known.status == "True" || !accepted => known.clone(),
        _ if accepted => condition(ESTABLISHED, false, "Installing", "the initial names have been accepted"),
        _ => condition(ESTABLISHED, false, "NotAccepted", "not all names are accepted"),
    }
}

#[cfg(test)]
mod tests;
