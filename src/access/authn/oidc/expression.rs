//! Expressions over the claims of a token, and over the user that they make.

use keelson_machinery::cel::{CALL_LIMIT, Environment, Fault, List, Program, Type, Value};
use serde_json::Value as Json;

use crate::user::User;

/// Why an expression has no result that can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExpressionError {
    #[error("expression '{expression}' resulted in error: {fault}")]
    Fault { expression: String, fault: Fault },
    /// A result of another type than it should have.
    #[error("{0}")]
    Type(&'static str),
    /// A rule that does not hold.
    #[error("validation expression '{expression}' failed: {message}")]
    Failed { expression: String, message: String },
}

/// What expressions over claims may refer to: `claims`.
pub fn claims_environment() -> Environment {
    Environment::new().variable("claims", Type::map(Type::String, Type::Dyn))
}

/// What expressions over the user may refer to: `user`.
pub fn user_environment() -> Environment {
    let texts = || Type::list(Type::String);
    let user = Type::object(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
        ],
    );
    Environment::new().variable("user", user)
}

/// Evaluates it with one variable.
pub(super) fn evaluate<'a>(program: &Program, variable: &str, value: Value<'a>) -> Result<Value<'a>, ExpressionError> {
    let evaluated = program.evaluate(&[(variable, value)], CALL_LIMIT);
    evaluated
        .map(|evaluated| evaluated.value)
        .map_err(|fault| ExpressionError::Fault {
            expression: program.source().to_owned(),
            fault,
        })
}

/// Texts that are not empty, of a text or a list of texts; nothing of null. What `split` and `findAll` return is no
/// such list, as it is none for kube-apiserver: whoever wants it has to go over it (`.map(part, part)`).
pub(super) fn texts(value: &Value<'_>) -> Option<Vec<String>> {
    let all = match value {
        Value::Null => Vec::new(),
        Value::List(List::Texts(_)) => return None,
        Value::List(list) => list
            .iter()
            .map(|one| one.as_str().map(str::to_owned))
            .collect::<Option<Vec<String>>>()?,
        other => vec![other.as_str()?.to_owned()],
    };
    Some(all.into_iter().filter(|text| !text.is_empty()).collect())
}

/// All numbers of claims are floating, as the original reads them: an expression that works there works here.
pub(super) fn with_floats(json: Json) -> Json {
    match json {
        Json::Number(number) => {
            let float = number.as_f64().and_then(serde_json::Number::from_f64);
            Json::Number(float.unwrap_or(number))
        }
        Json::Array(array) => array.into_iter().map(with_floats).collect(),
        Json::Object(object) => object
            .into_iter()
            .map(|(key, value)| (key, with_floats(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

/// The user as expressions see it: all of it is there, empty or not.
pub(super) fn shown(user: &User) -> Json {
    serde_json::json!({
        "username": user.name,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra,
    })
}
