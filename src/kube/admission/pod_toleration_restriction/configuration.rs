//! The file of PodTolerationRestriction, and lists of tolerations as JSON.

use keelson_api::core::v1::{PodSpec, Toleration};
use keelson_api::podtolerationrestriction_admission_k8s_io::v1alpha1;
use keelson_configuration::{ConfigurationError, Known, read_leniently};
use keelson_machinery::decode::DecodeError;
use keelson_machinery::json;

/// What holds where a namespace says nothing.
#[derive(Default)]
pub struct Configuration {
    /// What pods tolerate beside what they say.
    pub default: Vec<Toleration>,
    /// All that they may tolerate; empty: anything.
    pub allowed: Vec<Toleration>,
}

const KNOWN: Known = Known {
    kind: "Configuration",
    versions: &["podtolerationrestriction.admission.k8s.io/v1alpha1"],
};

impl Configuration {
    /// From JSON. Unknown fields mean nothing, as in kube-apiserver.
    ///
    /// # Errors
    /// It is of another kind, or no toleration is where one should be.
    pub fn read(text: Option<&str>) -> Result<Configuration, ConfigurationError> {
        let Some(text) = text else {
            return Ok(Configuration::default());
        };
        let (given, _) = read_leniently::<v1alpha1::Configuration>(text.as_bytes(), &[KNOWN])?;
        Ok(Configuration {
            default: given.default,
            allowed: given.whitelist,
        })
    }
}

/// A text that is no list of tolerations.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TolerationsError {
    /// A value of this type.
    #[error("json: cannot unmarshal {0} into Go value of type []v1.Toleration")]
    Type(&'static str),
    /// No JSON, or a list of something else.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// A list of tolerations.
///
/// # Errors
/// The text is none.
pub fn read_list(text: &str) -> Result<Vec<Toleration>, TolerationsError> {
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
        && !value.is_array()
        && !value.is_null()
    {
        return Err(TolerationsError::Type(json::kind_of(&value)));
    }
    let mut spec = PodSpec::default();
    let text = format!("{{\"tolerations\":{text}}}");
    json::read(text.as_bytes(), &mut spec)?;
    Ok(spec.tolerations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_their_kind() {
        let read = |text: &str| Configuration::read(Some(text)).map(|all| (all.default.len(), all.allowed.len()));
        let of = |rest: &str| {
            format!(
                r#"{{"apiVersion":"podtolerationrestriction.admission.k8s.io/v1alpha1","kind":"Configuration"{rest}}}"#
            )
        };
        assert_eq!(read(&of("")), Ok((0, 0)));
        assert_eq!(
            read(&of(r#","default":[{"key":"a"}],"whitelist":[{"key":"a"},{"key":"b"}]"#)),
            Ok((1, 2))
        );
        assert!(read(&of(r#","default":{}"#)).is_err());
        assert!(read("{}").is_err() && read("[]").is_err());
        assert!(Configuration::read(None).is_ok_and(|all| all.default.is_empty()));
    }
}
