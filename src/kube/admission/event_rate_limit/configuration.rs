//! The file of EventRateLimit.

use serde_json::Value;

use super::super::configuration::{Known, is_of};

const KIND: Known = Known {
    kind: "Configuration",
    versions: &["eventratelimit.admission.k8s.io/v1alpha1"],
};
/// Keys that are remembered where the file does not say how many.
const KEYS: usize = 4096;

/// What is limited together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitType {
    /// All events.
    Server,
    /// Those of a namespace.
    Namespace,
    /// Those that a user sends.
    User,
    /// Those of one sender about one object.
    SourceAndObject,
}

impl LimitType {
    const ALL: [LimitType; 4] = [
        LimitType::Server,
        LimitType::Namespace,
        LimitType::User,
        LimitType::SourceAndObject,
    ];

    /// As the file has it.
    pub fn name(self) -> &'static str {
        match self {
            LimitType::Server => "Server",
            LimitType::Namespace => "Namespace",
            LimitType::User => "User",
            LimitType::SourceAndObject => "SourceAndObject",
        }
    }
}

/// One limit.
#[derive(Clone, Debug)]
pub struct Limit {
    /// What is limited together.
    pub kind: LimitType,
    /// Events a second.
    pub qps: i32,
    /// Events at once.
    pub burst: i32,
    /// Keys that are remembered.
    pub keys: usize,
}

/// Reads the limits.
///
/// # Errors
/// The file is missing, of another kind, or has mistakes, which are all named.
pub fn read(text: Option<&str>) -> Result<Vec<Limit>, String> {
    let document: Value = match text {
        Some(text) => serde_json::from_str(text).map_err(|error| error.to_string())?,
        None => Value::Null,
    };
    if text.is_some() {
        is_of(&document, &KIND)?;
    }
    let given = document
        .get("limits")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let mut faults = Vec::new();
    if given.is_empty() {
        faults.push("limits: Invalid value: null: must not be empty".to_owned());
    }
    let limits = given
        .iter()
        .enumerate()
        .map(|(place, limit)| of(place, limit, &mut faults))
        .collect();
    match faults.is_empty() {
        true => Ok(limits),
        false => Err(keelson_access::authz::aggregate(&faults)),
    }
}

fn of(place: usize, limit: &Value, faults: &mut Vec<String>) -> Limit {
    let mut number = |field: &str, least: i64, why: &str| {
        let value = limit.get(field).and_then(Value::as_i64).unwrap_or(0);
        if value < least {
            faults.push(format!("limits[{place}].{field}: Invalid value: {value}: {why}"));
        }
        i32::try_from(value).unwrap_or(i32::MAX)
    };
    let burst = number("burst", 1, "must be positive");
    let qps = number("qps", 1, "must be positive");
    let said = limit.get("type").and_then(Value::as_str).unwrap_or_default();
    let kind = LimitType::ALL.into_iter().find(|kind| kind.name() == said);
    let keys = match kind {
        Some(LimitType::Server) => 1,
        _ => number("cacheSize", 0, "must not be negative"),
    };
    if kind.is_none() {
        let names: Vec<String> = LimitType::ALL
            .iter()
            .map(|kind| format!("\"{}\"", kind.name()))
            .collect();
        faults.push(format!(
            "limits[{place}].type: Unsupported value: \"{said}\": supported values: {}",
            names.join(", ")
        ));
    }
    Limit {
        kind: kind.unwrap_or(LimitType::Server),
        qps,
        burst,
        keys: match usize::try_from(keys) {
            Ok(0) | Err(_) => KEYS,
            Ok(keys) => keys,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(limits: &str) -> Result<Vec<Limit>, String> {
        let kind = r#""apiVersion":"eventratelimit.admission.k8s.io/v1alpha1","kind":"Configuration""#;
        read(Some(&format!(r#"{{{kind},"limits":[{limits}]}}"#)))
    }

    #[test]
    fn limits_are_positive_and_known() {
        let read_two = limits(r#"{"type":"User","qps":1,"burst":2},{"type":"Server","qps":1,"burst":1}"#).unwrap();
        let short: Vec<_> = read_two.iter().map(|limit| (limit.kind, limit.keys)).collect();
        assert_eq!(short, [(LimitType::User, KEYS), (LimitType::Server, 1)]);
        for (text, expected) in [
            ("", "limits: Invalid value: null: must not be empty"),
            (
                r#"{"type":"User","qps":1}"#,
                "limits[0].burst: Invalid value: 0: must be positive",
            ),
            (
                r#"{"type":"X","qps":1,"burst":1}"#,
                "limits[0].type: Unsupported value: \"X\": supported values: \"Server\", \"Namespace\", \"User\", \
                 \"SourceAndObject\"",
            ),
            (
                r#"{"type":"User","qps":1,"burst":1,"cacheSize":-1}"#,
                "limits[0].cacheSize: Invalid value: -1: must not be negative",
            ),
        ] {
            assert_eq!(limits(text).err().as_deref(), Some(expected), "{text}");
        }
        assert!(read(None).is_err() && read(Some("{}")).is_err());
    }
}
