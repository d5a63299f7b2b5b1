//! How a request ended, as far as an event shows it. Whoever makes an answer attaches this to it, because the answer's
//! bytes are already in the client's format.

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
        let status = object.as_reflect().as_any().downcast_ref::<Status>().cloned();
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
