//! Controller revisions: data that never changes.

use keelson_api::apps::v1::ControllerRevision;
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::typed::{IMMUTABLE, non_negative};

/// Registers the rules of controller revisions.
pub fn register(code: &mut KindCode) {
    code.kind::<ControllerRevision>()
        .strategy(ControllerRevisionStrategy)
        .cells(cells::workload::CONTROLLER_REVISION);
}

/// The rules of controller revisions.
struct ControllerRevisionStrategy;

impl Strategy for ControllerRevisionStrategy {
    type Object = ControllerRevision;

    fn validate(&self, _context: &Context, object: &ControllerRevision) -> ErrorList {
        let mut errors = ErrorList::default();
        let data = object.data.as_bytes().trim_ascii_start();
        if data.is_empty() {
            errors.push(FieldError::required(&Path::new("data"), "data is mandatory"));
        } else if !data.starts_with(b"{") {
            errors.push(FieldError::required(
                &Path::new("data"),
                "data must be a valid JSON object",
            ));
        }
        errors.extend(non_negative(object.revision, &Path::new("revision")));
        errors
    }

    fn validate_update(&self, _context: &Context, new: &ControllerRevision, old: &ControllerRevision) -> ErrorList {
        let mut errors = non_negative(new.revision, &Path::new("revision"));
        if new.data != old.data {
            let shown = match new.data.as_bytes() {
                [] => BadValue::null(),
                data => BadValue::json(String::from_utf8_lossy(data)),
            };
            errors.push(FieldError::invalid(&Path::new("data"), shown, IMMUTABLE));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn data_stays() {
        let old: ControllerRevision = read(r#"{"data":{"a":1},"revision":1}"#);
        assert_eq!(lines(&ControllerRevisionStrategy.validate(&context(), &old)), "");
        let new: ControllerRevision = read(r#"{"data":{"a":2},"revision":-1}"#);
        assert_eq!(
            lines(&ControllerRevisionStrategy.validate_update(&context(), &new, &old)),
            "revision: Invalid value: -1: must be greater than or equal to 0\n\
             data: Invalid value: {\"a\":2}: field is immutable"
        );
        assert_eq!(
            lines(&ControllerRevisionStrategy.validate(&context(), &ControllerRevision::default())),
            "data: Required value: data is mandatory"
        );
        assert_eq!(
            lines(&ControllerRevisionStrategy.validate(&context(), &read::<ControllerRevision>(r#"{"data":5}"#))),
            "data: Required value: data must be a valid JSON object"
        );
    }
}
