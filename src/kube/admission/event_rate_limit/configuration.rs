//! The file of EventRateLimit.

use keelson_api::eventratelimit_admission_k8s_io::v1alpha1;
use keelson_configuration::{ConfigurationError, Known, read_leniently};

const KNOWN: Known = Known {
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

/// Why there are no limits, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LimitsError {
    /// The file is of another kind, or has values that do not fit their fields.
    #[error(transparent)]
    File(#[from] ConfigurationError),
    /// Values that make no sense; each text names the field.
    #[error("{}", keelson_access::authz::aggregate(.0))]
    Invalid(Vec<String>),
}

/// Reads the limits. Unknown fields mean nothing, as in kube-apiserver.
///
/// # Errors
/// The file is missing, of another kind, or has mistakes, which are all named.
pub fn read(text: Option<&str>) -> Result<Vec<Limit>, LimitsError> {
    let given = match text {
        Some(text) => read_leniently::<v1alpha1::Configuration>(text.as_bytes(), &[KNOWN])?.0,
        None => v1alpha1::Configuration::default(),
    };
    let mut faults = Vec::new();
    if given.limits.is_empty() {
        faults.push("limits: Invalid value: null: must not be empty".to_owned());
    }
    let limits = given.limits.iter().enumerate();
    let limits = limits.map(|(place, limit)| of(place, limit, &mut faults)).collect();
    match faults.is_empty() {
        true => Ok(limits),
        false => Err(LimitsError::Invalid(faults)),
    }
}

fn of(place: usize, given: &v1alpha1::Limit, faults: &mut Vec<String>) -> Limit {
    let mut number = |field: &str, value: i32, least: i32, why: &str| {
        if value < least {
            faults.push(format!("limits[{place}].{field}: Invalid value: {value}: {why}"));
        }
        value
    };
    let burst = number("burst", given.burst, 1, "must be positive");
    let qps = number("qps", given.qps, 1, "must be positive");
    let kind = LimitType::ALL.into_iter().find(|kind| kind.name() == given.r#type);
    let keys = match kind {
        Some(LimitType::Server) => 1,
        _ => number("cacheSize", given.cache_size, 0, "must not be negative"),
    };
    if kind.is_none() {
        let names = LimitType::ALL.map(|kind| format!("\"{}\"", kind.name())).join(", ");
        faults.push(format!(
            "limits[{place}].type: Unsupported value: \"{}\": supported values: {names}",
            given.r#type
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
        read(Some(&format!(r#"{{{kind},"limits":[{limits}]}}"#))).map_err(|error| error.to_string())
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
