//! The default among classes: the newest of those that an annotation marks.

use std::sync::Arc;

use keelson_machinery::object::Object;
use keelson_machinery::time::Time;
use keelson_registry::Followed;

/// A class that an annotation marks as the default.
pub struct Marked {
    name: String,
    created: Time,
}

impl Marked {
    /// `None`: none of the annotations marks the object.
    pub fn of(object: &dyn Object, annotations: &[&str]) -> Option<Marked> {
        let meta = object.meta();
        let is_marked = |key: &&str| meta.annotations.get(*key).is_some_and(|value| value == "true");
        annotations.iter().any(is_marked).then(|| Marked {
            name: meta.name.clone(),
            created: meta.creation_timestamp,
        })
    }
}

/// The name of the newest one, of several of the same time the first by name.
pub fn newest(classes: &Followed<Marked>) -> Option<String> {
    let all = classes.all();
    let newest = all
        .iter()
        .reduce(|best, one| if is_before(one, best) { one } else { best });
    newest.map(|class| class.name.clone())
}

fn is_before(one: &Arc<Marked>, other: &Arc<Marked>) -> bool {
    match one.created == other.created {
        true => one.name < other.name,
        false => one.created > other.created,
    }
}
