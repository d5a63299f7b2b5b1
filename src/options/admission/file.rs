//! The file that configures admission plug-ins: a section for each, in the file itself or in one that it names.

use std::path::{Path, PathBuf};

use keelson_configuration::apiserver_config_k8s_io::v1::AdmissionConfiguration;
use keelson_configuration::{ConfigurationError, FileError, Known, read_file};
use keelson_machinery::decode::DecodeError;
use keelson_machinery::yaml;
use serde_json::Value;

const KNOWN: Known = Known {
    kind: "AdmissionConfiguration",
    versions: &["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"],
};
/// Plug-ins whose configuration was the whole file before there were sections, and a field of each.
const WHOLE: [(&str, &str); 2] = [
    ("ImagePolicyWebhook", "imagePolicy"),
    ("PodNodeSelector", "podNodeSelectorPluginConfig"),
];

/// What the file says of each plug-in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configurations {
    /// The file.
    pub path: PathBuf,
    sections: Vec<(String, Section)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Section {
    /// JSON.
    Text(String),
    /// In a file of its own.
    File(PathBuf),
    Nothing,
}

/// A file that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionFileError {
    #[error(transparent)]
    File(#[from] FileError),
    /// What it says is wrong.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// The file of a plug-in's own can't be read.
    #[error("{}: {error}", .path.display())]
    Section { path: PathBuf, error: FileError },
    /// Or is neither YAML nor JSON.
    #[error("{}: {error}", .path.display())]
    Text { path: PathBuf, error: DecodeError },
}

impl Configurations {
    /// # Errors
    /// There is no such file, or it has mistakes.
    pub fn read(path: &Path) -> Result<Configurations, AdmissionFileError> {
        let text = read_file(path)?;
        let sections = parse(&text, path).or_else(|error| of_old(&text).ok_or(error))?;
        Ok(Configurations {
            path: path.to_owned(),
            sections,
        })
    }

    /// The section of a plug-in, as JSON; `None`: there is none.
    ///
    /// # Errors
    /// The file that it names can't be read.
    pub fn of(&self, plugin: &str) -> Result<Option<String>, AdmissionFileError> {
        let section = self.sections.iter().find(|(name, _)| name == plugin);
        match section.map(|(_, section)| section) {
            None | Some(Section::Nothing) => Ok(None),
            Some(Section::Text(json)) => Ok(Some(json.clone())),
            Some(Section::File(path)) => {
                let path = path.clone();
                let text = match read_file(&path) {
                    Ok(text) => text,
                    Err(error) => return Err(AdmissionFileError::Section { path, error }),
                };
                match yaml::to_json(&text) {
                    Ok(json) => Ok(Some(String::from_utf8_lossy(&json).into_owned())),
                    Err(error) => Err(AdmissionFileError::Text { path, error }),
                }
            }
        }
    }
}

fn parse(text: &[u8], path: &Path) -> Result<Vec<(String, Section)>, ConfigurationError> {
    let given: AdmissionConfiguration = keelson_configuration::read(text, &[KNOWN])?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let sections = given.plugins.into_iter().map(|plugin| {
        let section = match plugin.configuration.filter(|json| !json.as_bytes().is_empty()) {
            Some(json) => Section::Text(String::from_utf8_lossy(json.as_bytes()).into_owned()),
            None if plugin.path.is_empty() => Section::Nothing,
            None => Section::File(folder.join(&plugin.path)),
        };
        (plugin.name, section)
    });
    Ok(sections.collect())
}

/// `None`: it is no such file either.
fn of_old(text: &[u8]) -> Option<Vec<(String, Section)>> {
    let json = yaml::to_json(text).ok()?;
    let value: Value = serde_json::from_slice(&json).ok()?;
    let is_old = value.get("kind").is_none() && WHOLE.iter().any(|(_, field)| value.get(*field).is_some());
    let whole = |name: &str| (name.to_owned(), Section::Text(value.to_string()));
    is_old.then(|| WHOLE.iter().map(|(name, _)| whole(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_stand_in_the_file_or_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admission.yaml");
        std::fs::write(folder.path().join("other.yaml"), "a: 1\n").unwrap();
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Configurations::read(&path)
        };
        let kind = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
        let all = read(&format!(
            "{kind}plugins:\n- name: A\n  configuration: {{b: [1]}}\n- name: B\n  path: other.yaml\n- name: C\n- name: D\n  \
             path: absent.yaml\n"
        ));
        let all = all.ok().unwrap();
        assert_eq!(all.of("A").unwrap().as_deref(), Some("{\"b\":[1]}"));
        assert_eq!(all.of("B").unwrap().as_deref(), Some("{\"a\":1}"));
        assert_eq!((all.of("C").unwrap(), all.of("X").unwrap()), (None, None));
        assert!(
            all.of("D")
                .is_err_and(|error| error.to_string().contains("absent.yaml"))
        );
        let old = read("imagePolicy: {kubeConfigFile: x}\n").ok().unwrap();
        assert_eq!(
            old.of("ImagePolicyWebhook").unwrap().as_deref(),
            Some("{\"imagePolicy\":{\"kubeConfigFile\":\"x\"}}")
        );
        for (text, expected) in [
            (
                format!("{kind}plugin: []\n"),
                "strict decoding error: unknown field \"plugin\"",
            ),
            ("a: b\n".to_owned(), "Object 'Kind' is missing in 'a: b\n'"),
            (
                "apiVersion: v1\nkind: AdmissionConfiguration\n".to_owned(),
                "no kind \"AdmissionConfiguration\" is registered for version \"v1\"",
            ),
        ] {
            let told = read(&text).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), Some(expected));
        }
        assert!(Configurations::read(&folder.path().join("x")).is_err());
    }
}
