//! The outcome of a request, as far as an event shows it. Whoever makes an answer attaches this to it, because the
//! answer's bytes are already in the client's format.

use keelson_machinery::json;
use keelson_machinery::meta::v1::Status;
use keelson_machinery::object::Kind;

use super::level::Level;
use super::managed_fields;

/// How much of an answer is to be attached to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    pub level: Level,
    pub omit_managed_fields: bool,
}

/// What an answer says.
#[derive(Clone, Default)]
pub struct Outcome {
    /// The answer, if it is a Status.
    pub status: Option<Status>,
    /// The answer as JSON, where it is recorded.
    pub object: Option<Vec<u8>>,
}

impl Recording {
    /// Whether whole answers are recorded.
    pub fn objects(self) -> bool {
        self.level >= Level::RequestResponse
    }

    /// The JSON of an object as it is recorded.
    pub fn shown(self, json: &[u8]) -> Vec<u8> {
        match self.omit_managed_fields {
            true => managed_fields::without(json),
            false => json.to_vec(),
        }
    }

    /// What is recorded of an answer that is one object. `json`: its text, if that has been made.
    pub fn of_kind(self, object: &dyn Kind, json: Option<&[u8]>) -> Option<Outcome> {
        if self.level == Level::None {
            return None;
        }
        let status = object
            .as_reflect()
            .as_any()
            .downcast_ref::<Status>()
            .map(|status| match self.level {
                Level::Metadata => without_body(status.clone()),
                _ => status.clone(),
            });
        let object = self.objects().then(|| match json {
            Some(json) => self.shown(json),
            None => self.shown(&json::to_vec(object)),
        });
        (status.is_some() || object.is_some()).then_some(Outcome { status, object })
    }

    /// What is recorded of an answer that is no single object: a list, a Table, metadata alone.
    pub fn of_json(self, json: &[u8]) -> Option<Outcome> {
        let object = self.objects().then(|| self.shown(json));
        object.map(|object| Outcome {
            status: None,
            object: Some(object),
        })
    }
}

/// What stands for text that was sent.
const HIDDEN: &str = "***";
/// How the words begin that tell of a body that is no object; they end with its first bytes, in brackets.
const UNRECOGNIZED: &str = "the object provided is unrecognized";
/// The field that is named when a patch has made no object; the words show the whole of what it has made.
const PATCH: &str = "patch";
const PATCH_INVALID: &str = "patch: Invalid value: ";

/// The Status without what its words repeat of the body that was sent: who may know how a request ended may not know
/// that.
fn without_body(mut status: Status) -> Status {
    if status.message.starts_with(UNRECOGNIZED)
        && let Some(begin) = status.message.rfind(" (")
    {
        status.message.truncate(begin);
    }
    if let Some(begin) = status.message.find(PATCH_INVALID) {
        status.message.truncate(begin + PATCH_INVALID.len());
        status.message.push_str(HIDDEN);
    }
    let causes = status.details.iter_mut().flat_map(|details| &mut details.causes);
    for cause in causes.filter(|cause| cause.field == PATCH) {
        cause.message = HIDDEN.to_owned();
    }
    status
}

#[cfg(test)]
mod tests {
    use keelson_machinery::field::{ErrorList, FieldError, Path};
    use keelson_machinery::status::StatusError;

    use super::*;

    fn recorded(level: Level, error: &StatusError) -> String {
        let recording = Recording {
            level,
            omit_managed_fields: false,
        };
        let outcome = recording.of_kind(&error.to_status(), None).unwrap();
        String::from_utf8(json::to_vec(&outcome.status.unwrap())).unwrap()
    }

    #[test]
    fn words_that_repeat_a_body_are_for_higher_levels() {
        let text = "the object provided is unrecognized (must be of type Secret): bad ({\"data\": \"canary)";
        let unrecognized = StatusError::bad_request(text);
        let mut errors = ErrorList::new();
        errors.push(FieldError::invalid(&Path::new("patch"), "{\"data\":\"canary\"}", "no"));
        let unfit = StatusError::invalid("", "", "", &errors);
        for error in [unrecognized, unfit] {
            let low = recorded(Level::Metadata, &error);
            assert!(!low.contains("canary"), "{low}");
            assert!(recorded(Level::Request, &error).contains("canary"));
        }
        let forbidden = StatusError::bad_request("configmaps \"a (b)\" is forbidden");
        assert!(recorded(Level::Metadata, &forbidden).contains("a (b)"));
    }
}
