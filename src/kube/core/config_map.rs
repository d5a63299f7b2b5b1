//! Config maps: keys, sizes, and objects that say of themselves that they never change.

use keelson_api::core::v1::ConfigMap;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::data::{self, IMMUTABLE};
use crate::cells;

/// Registers the rules of config maps.
pub fn register(code: &mut KindCode) {
    code.kind::<ConfigMap>()
        .strategy(ConfigMapStrategy)
        .cells(cells::config::CONFIG_MAP);
}

/// The rules of config maps.
struct ConfigMapStrategy;

impl Strategy for ConfigMapStrategy {
    type Object = ConfigMap;

    fn validate(&self, _context: &Context, object: &ConfigMap) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _context: &Context, new: &ConfigMap, _old: &ConfigMap) -> ErrorList {
        validate(new)
    }

    fn validate_change(&self, _context: &Context, new: &ConfigMap, old: &ConfigMap) -> ErrorList {
        let mut errors = ErrorList::default();
        if old.immutable == Some(true) {
            let changed = [
                ("immutable", new.immutable != Some(true)),
                ("data", new.data != old.data),
                ("binaryData", new.binary_data != old.binary_data),
            ];
            let changed = changed.into_iter().filter(|(_, changed)| *changed);
            errors.extend(changed.map(|(field, _)| FieldError::forbidden(&Path::new(field), IMMUTABLE)));
        }
        errors
    }
}

fn validate(object: &ConfigMap) -> ErrorList {
    let (text, binary) = (Path::new("data"), Path::new("binaryData"));
    let mut errors: ErrorList = data::validate_keys(&object.data, &text).into_iter().collect();
    errors.extend(data::validate_keys(&object.binary_data, &binary));
    for key in object.data.keys().filter(|key| object.binary_data.contains_key(*key)) {
        errors.push(FieldError::invalid(
            &text.key(key),
            key,
            "duplicate of key present in binaryData",
        ));
    }
    let size: usize = object
        .data
        .values()
        .map(String::len)
        .chain(object.binary_data.values().map(|v| v.len()))
        .sum();
    if size > data::SIZE_MAX {
        // It is the object as a whole that is too long.
        errors.push(FieldError::too_long(&Path::new(""), data::SIZE_MAX));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn data_is_checked_as_a_whole() {
        let object: ConfigMap = read(r#"{"data":{"a":"1",".":""},"binaryData":{"a":"AA=="}}"#);
        assert_eq!(
            lines(&ConfigMapStrategy.validate(&context(), &object)),
            "data[.]: Invalid value: \".\": must not be '.'\n\
             data[a]: Invalid value: \"a\": duplicate of key present in binaryData"
        );
        let mut object = ConfigMap::default();
        object.data.insert("a".to_owned(), "x".repeat(data::SIZE_MAX));
        assert!(ConfigMapStrategy.validate(&context(), &object).is_empty());
        object.binary_data.insert("b".to_owned(), vec![0].into());
        let errors = ConfigMapStrategy.validate(&context(), &object);
        assert_eq!(lines(&errors), "[]: Too long: may not be more than 1048576 bytes");
    }

    #[test]
    fn immutable_stays() {
        let old: ConfigMap = read(r#"{"immutable":true,"data":{"a":"1"}}"#);
        let check = |text: &str| lines(&ConfigMapStrategy.validate_change(&context(), &read::<ConfigMap>(text), &old));
        assert_eq!(
            check(r#"{"immutable":true,"data":{"a":"1"},"metadata":{"labels":{"x":"y"}}}"#),
            ""
        );
        assert_eq!(
            check(r#"{"data":{"a":"2"}}"#),
            "immutable: Forbidden: field is immutable when `immutable` is set\n\
             data: Forbidden: field is immutable when `immutable` is set"
        );
    }
}
