//! Controller revisions: data that never changes.

use keelson_api::apps::v1::ControllerRevision;
use keelson_machinery::field::{BadValue, ErrorList};
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::faults::{self, Faults};
use crate::typed::IMMUTABLE;

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

    fn validate(&self, _context: &Context, new: &ControllerRevision, old: Option<&ControllerRevision>) -> ErrorList {
        faults::of_object(|f| {
            if old.is_none() {
                is_object(&mut f.at("data"), new.data.as_bytes().trim_ascii_start());
            }
            f.at("revision").non_negative(new.revision);
            if old.is_some_and(|old| old.data != new.data) {
                let shown = match new.data.as_bytes() {
                    [] => BadValue::null(),
                    data => BadValue::json(String::from_utf8_lossy(data)),
                };
                f.at("data").invalid(shown, IMMUTABLE);
            }
        })
    }
}

/// Data is some JSON object.
fn is_object(f: &mut Faults<'_>, data: &[u8]) {
    f.required_if(data.is_empty(), "data is mandatory");
    let is_object = data.is_empty() || data.starts_with(b"{");
    f.required_if(!is_object, "data must be a valid JSON object");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn data_stays() {
        let old: ControllerRevision = read(r#"{"data":{"a":1},"revision":1}"#);
        assert_eq!(lines(&ControllerRevisionStrategy.validate(&context(), &old, None)), "");
        let new: ControllerRevision = read(r#"{"data":{"a":2},"revision":-1}"#);
        assert_eq!(
            lines(&ControllerRevisionStrategy.validate(&context(), &new, Some(&old))),
            "revision: Invalid value: -1: must be greater than or equal to 0\n\
             data: Invalid value: {\"a\":2}: field is immutable"
        );
        assert_eq!(
            lines(&ControllerRevisionStrategy.validate(&context(), &ControllerRevision::default(), None)),
            "data: Required value: data is mandatory"
        );
        assert_eq!(
            lines(&ControllerRevisionStrategy.validate(&context(), &read::<ControllerRevision>(r#"{"data":5}"#), None)),
            "data: Required value: data must be a valid JSON object"
        );
    }
}
