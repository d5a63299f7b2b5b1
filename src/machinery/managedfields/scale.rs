//! Owners of the scale of an object: those who own its number of replicas, seen as owners of a Scale.

use std::cell::OnceCell;

use super::{Managed, Operation, Owner};
use crate::fieldset::{FieldSet, PathElement};

/// Where a Scale has the number of replicas.
const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// The path of fields that a definition writes as `.spec.replicas`.
fn elements(path: &str) -> Vec<PathElement> {
    let names = path.split('.').filter(|name| !name.is_empty());
    names.map(|name| PathElement::Field(name.to_owned().into())).collect()
}

impl Managed {
    /// The owners of the Scale, in version `scale_version`, of an object that has the number of replicas at `path`.
    pub fn of_scale(&self, path: &str, scale_version: &str) -> Managed {
        let path = elements(path);
        let owners = self.owners.iter().filter(|o| o.fields().has(&path)).map(|o| Owner {
            api_version: scale_version.to_owned(),
            fields: OnceCell::from(FieldSet::of_names(&REPLICAS)),
            text: None,
            ..o.clone()
        });
        Managed {
            owners: owners.collect(),
        }
    }

    /// The owners of the object, of version `version`, after a write to its Scale. An owner by apply keeps its entry;
    /// those by update get one for the replicas alone, as kube-apiserver gives them.
    pub fn after_scale(mut self, scale: Managed, path: &str, version: &str) -> Managed {
        let path = elements(path);
        let replicas = FieldSet::of(&path);
        let mut scale = scale.owners;
        for owner in &mut self.owners {
            if !owner.fields().has(&path) {
                continue;
            }
            let kept = scale
                .iter()
                .position(|o| owner.operation == Operation::Apply && o.is_same(owner));
            match kept {
                Some(at) => drop(scale.remove(at)),
                None => owner.lose(&replicas),
            }
        }
        self.owners.retain(|o| !o.is_empty());
        self.owners.extend(scale.into_iter().map(|o| Owner {
            api_version: version.to_owned(),
            fields: OnceCell::from(replicas.clone()),
            text: None,
            time: None,
            ..o
        }));
        self
    }
}
