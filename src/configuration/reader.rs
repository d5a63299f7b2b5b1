//! The strict reader of configuration files.

use keelson_machinery::decode::{DecodeError, StrictProblem, TypeMeta};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::{json, yaml};

/// A kind that a file may name, and the API versions of the same form that it may name with it.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// `EncryptionConfiguration`.
    pub kind: &'static str,
    /// `apiserver.config.k8s.io/v1`.
    pub versions: &'static [&'static str],
}

/// What is wrong with the text of a file, in kube-apiserver's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// Neither YAML nor JSON, or a value that does not fit its field.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// No object that could name its kind.
    #[error("couldn't get version/kind; json parse error: {0}")]
    TypeMeta(DecodeError),
    /// An object that names no kind or no version.
    #[error("Object '{missing}' is missing in '{text}'")]
    Untyped {
        /// `Kind` or `apiVersion`.
        missing: &'static str,
        /// The file.
        text: String,
    },
    /// Another kind or version.
    #[error("no kind {kind:?} is registered for version {version:?}")]
    OtherKind {
        /// As the file has them.
        kind: String,
        /// `apiVersion`.
        version: String,
    },
    /// Fields that are unknown or stand twice.
    #[error("strict decoding error: {}", .0.join(", "))]
    Strict(Vec<String>),
}

/// Reads the text of a file into the type of its definition.
///
/// # Errors
/// All that [`ConfigurationError`] has.
pub fn read<T: Reflect + Default>(text: &[u8], known: &[Known]) -> Result<T, ConfigurationError> {
    let decoded = decode(text, known)?;
    let mut problems: Vec<String> = decoded.repeated.into_iter().collect();
    problems.extend(decoded.problems.iter().map(ToString::to_string));
    match problems.is_empty() {
        true => Ok(decoded.value),
        false => Err(ConfigurationError::Strict(problems)),
    }
}

/// As [`read`], where fields that are unknown or stand twice are passed over, each with a text that names it.
///
/// # Errors
/// As [`read`], but for [`ConfigurationError::Strict`].
pub fn read_leniently<T: Reflect + Default>(
    text: &[u8],
    known: &[Known],
) -> Result<(T, Vec<String>), ConfigurationError> {
    let decoded = decode(text, known)?;
    let repeated = decoded.repeated.iter().flat_map(|text| text.lines().skip(1));
    let mut problems: Vec<String> = repeated.map(|line| line.trim().to_owned()).collect();
    problems.extend(decoded.problems.iter().map(ToString::to_string));
    Ok((decoded.value, problems))
}

struct Decoded<T> {
    value: T,
    /// What a strict reader of YAML says of keys that stand twice.
    repeated: Option<String>,
    problems: Vec<StrictProblem>,
}

fn decode<T: Reflect + Default>(text: &[u8], known: &[Known]) -> Result<Decoded<T>, ConfigurationError> {
    let (json, repeated) = yaml::to_json_strict(text)?;
    json_kind(&json, known).map_err(|error| match error {
        // As it stands in the file.
        ConfigurationError::Untyped { missing, .. } => ConfigurationError::Untyped {
            missing,
            text: String::from_utf8_lossy(text).into_owned(),
        },
        error => error,
    })?;
    let mut value = T::default();
    let problems = json::read(&json, &mut value)?;
    Ok(Decoded {
        value,
        repeated,
        problems,
    })
}

/// Which of the kinds a document of JSON names.
///
/// # Errors
/// It names none of them.
pub fn json_kind(json: &[u8], known: &[Known]) -> Result<TypeMeta, ConfigurationError> {
    let named = json::type_meta_of_all(json).map_err(ConfigurationError::TypeMeta)?;
    let missing = |missing| {
        Err(ConfigurationError::Untyped {
            missing,
            text: String::from_utf8_lossy(json).into_owned(),
        })
    };
    let is_known = |one: &Known| one.kind == named.kind && one.versions.contains(&named.api_version.as_str());
    match (named.kind.as_str(), named.api_version.as_str()) {
        ("", _) => missing("Kind"),
        (_, "") => missing("apiVersion"),
        _ if known.iter().any(is_known) => Ok(named),
        _ => Err(ConfigurationError::OtherKind {
            kind: named.kind,
            version: named.api_version,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apiserver_k8s_io::v1beta1::EgressSelectorConfiguration;

    const KNOWN: Known = Known {
        kind: "EgressSelectorConfiguration",
        versions: &["apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1"],
    };

    fn of(text: &str) -> Result<EgressSelectorConfiguration, String> {
        read(text.as_bytes(), &[KNOWN]).map_err(|error| error.to_string())
    }

    #[test]
    fn files_are_yaml_or_json_of_every_known_version() {
        for text in [
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: [{name: etcd}]\n",
            r#"{"kind":"EgressSelectorConfiguration","apiVersion":"apiserver.k8s.io/v1alpha1",
                "egressSelections":[{"name":"etcd","connection":null}]}"#,
        ] {
            assert_eq!(of(text).unwrap().egress_selections[0].name, "etcd", "{text}");
        }
    }

    #[test]
    fn mistakes_name_their_place() {
        let head = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n";
        for (text, expected) in [
            (String::new(), "Object 'Kind' is missing in ''"),
            ("a: b\n".to_owned(), "Object 'Kind' is missing in 'a: b\n'"),
            ("kind: A\n".to_owned(), "Object 'apiVersion' is missing in 'kind: A\n'"),
            (
                head.replace("v1beta1", "v9"),
                "no kind \"EgressSelectorConfiguration\" is registered for version \"apiserver.k8s.io/v9\"",
            ),
            (
                format!("{head}egressSelections: {{}}\n"),
                "json: cannot unmarshal object into Go struct field EgressSelectorConfiguration.egressSelections of type \
                 []v1beta1.EgressSelection",
            ),
            (
                format!("{head}egressSelections: [{{name: 1}}]\n"),
                "json: cannot unmarshal number into Go struct field EgressSelection.egressSelections.name of type string",
            ),
            (
                format!("{head}b: 1\negressSelections: [{{a: 1}}]\n"),
                "strict decoding error: unknown field \"b\", unknown field \"egressSelections[0].a\"",
            ),
            (
                format!("{head}kind: EgressSelectorConfiguration\n"),
                "strict decoding error: yaml: unmarshal errors:\n  line 3: key \"kind\" already set in map",
            ),
        ] {
            assert_eq!(of(&text).err().as_deref(), Some(expected), "{text}");
        }
        let list = of("[]").err().unwrap();
        assert!(
            list.starts_with("couldn't get version/kind; json parse error: json: cannot unmarshal array"),
            "{list}"
        );
        assert!(of(": :\n\t").is_err());
    }

    #[test]
    fn a_lenient_reader_tells_what_it_passes_over() {
        let text = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\nb: 1\nb: 2\n";
        let read = read_leniently::<EgressSelectorConfiguration>(text.as_bytes(), &[KNOWN]);
        let told = read.map(|(_, problems)| problems).unwrap();
        assert_eq!(told, ["line 4: key \"b\" already set in map", "unknown field \"b\""]);
    }
}
