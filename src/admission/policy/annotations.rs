//! Annotations of audit events that policies make.

use keelson_machinery::content::labels::qualified_name;
use keelson_registry::admission::Attributes;
use serde_json::json;

use super::binding::Binding;

const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// Bytes of a value that are recorded.
const MAX_VALUE: usize = 10 * 1024;

/// Notes that a policy failed.
pub(super) fn failure(attributes: &Attributes<'_>, binding: &Binding, index: usize, message: &str) {
    attributes.annotate(FAILURE, || {
        let actions: Vec<&str> = binding.actions.iter().map(|action| action.word()).collect();
        let failure = json!([{
            "message": message,
            "policy": binding.policy,
            "binding": binding.name,
            "expressionIndex": index,
            "validationActions": actions,
        }]);
        failure.to_string()
    });
}

/// What the bindings of one policy want noted, by name.
#[derive(Default)]
pub(super) struct Collected(Vec<(String, Vec<String>)>);

impl Collected {
    /// Adds a value, unless another binding has it too.
    pub fn add(&mut self, name: &str, value: &str) {
        let value = value.get(..value.floor_char_boundary(MAX_VALUE)).unwrap_or(value);
        let place = self.0.iter().position(|(known, _)| known == name);
        match place.and_then(|place| self.0.get_mut(place)) {
            None => self.0.push((name.to_owned(), vec![value.to_owned()])),
            Some((_, values)) if values.iter().any(|known| known == value) => {}
            Some((_, values)) => values.push(value.to_owned()),
        }
    }

    /// Notes them in the name of the policy.
    pub fn publish(self, attributes: &Attributes<'_>, policy: &str) {
        for (name, values) in self.0 {
            let key = format!("{policy}/{name}");
            if qualified_name(&key).is_empty() {
                attributes.annotate(key, || values.join(", "));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_once_and_cut() {
        let mut collected = Collected::default();
        collected.add("a", "x");
        collected.add("a", "x");
        collected.add("a", "y");
        collected.add("b", &"é".repeat(MAX_VALUE));
        let shown: Vec<(&str, usize)> = collected
            .0
            .iter()
            .map(|(name, values)| (name.as_str(), values.len()))
            .collect();
        assert_eq!(shown, [("a", 2), ("b", 1)]);
        assert_eq!(collected.0[1].1[0].len(), MAX_VALUE);
    }
}
