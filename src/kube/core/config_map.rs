//! Config maps: keys, sizes, and objects that say of themselves that they never change.

use keelson_api::core::v1::ConfigMap;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::data;
use crate::cells;
use crate::faults::{self, Faults};

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

    fn validate(&self, _context: &Context, new: &ConfigMap, _old: Option<&ConfigMap>) -> ErrorList {
        faults::of_object(|f| check(f, new))
    }

    fn validate_change(&self, _context: &Context, new: &ConfigMap, old: &ConfigMap) -> ErrorList {
        let fields = [
            ("immutable", new.immutable != Some(true)),
            ("data", new.data != old.data),
            ("binaryData", new.binary_data != old.binary_data),
        ];
        let is_marked = old.immutable == Some(true);
        faults::of_object(|f| data::marked(f, if is_marked { &fields } else { &[] }))
    }
}

fn check(f: &mut Faults<'_>, map: &ConfigMap) {
    data::keys(&mut f.at("data"), &map.data);
    data::keys(&mut f.at("binaryData"), &map.binary_data);
    for key in map.data.keys().filter(|key| map.binary_data.contains_key(*key)) {
        f.at("data")
            .key(key)
            .invalid(key, "duplicate of key present in binaryData");
    }
    let (texts, bytes) = (map.data.values().map(String::len), map.binary_data.values());
    if texts.chain(bytes.map(|v| v.len())).sum::<usize>() > data::SIZE_MAX {
        // It is the object as a whole that is too long.
        f.extend([FieldError::too_long(&Path::new(""), data::SIZE_MAX)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn data_is_checked_as_a_whole() {
        let object: ConfigMap = read(r#"{"data":{"a":"1",".":""},"binaryData":{"a":"AA=="}}"#);
        assert_eq!(
            lines(&ConfigMapStrategy.validate(&context(), &object, None)),
            "data[.]: Invalid value: \".\": must not be '.'\n\
             data[a]: Invalid value: \"a\": duplicate of key present in binaryData"
        );
        let mut object = ConfigMap::default();
        object.data.insert("a".to_owned(), "x".repeat(data::SIZE_MAX));
        assert!(ConfigMapStrategy.validate(&context(), &object, None).is_empty());
        object.binary_data.insert("b".to_owned(), vec![0].into());
        let errors = ConfigMapStrategy.validate(&context(), &object, None);
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
