//! The file that says how values are encrypted in the store.

mod configuration;

use std::path::{Path, PathBuf};

use keelson_configuration::read_file;
use keelson_storage::encryption::Configuration;

pub use configuration::EncryptionFileError;

use super::OptionError;

const FLAG: &str = "--encryption-provider-config";

/// A checked file.
#[derive(Clone, Debug)]
pub struct EncryptionFile {
    pub path: PathBuf,
    pub configuration: Configuration,
    /// It is read anew while the server runs.
    pub followed: bool,
}

impl EncryptionFile {
    pub(super) fn open(path: &Path, followed: bool) -> Result<EncryptionFile, OptionError> {
        let configuration = EncryptionFile::read(path).map_err(|reason| OptionError::file(FLAG, path, reason))?;
        Ok(EncryptionFile {
            path: path.to_owned(),
            configuration,
            followed,
        })
    }

    /// Reads the file, YAML or JSON.
    ///
    /// # Errors
    /// All that [`EncryptionFileError`] has.
    pub fn read(path: &Path) -> Result<Configuration, EncryptionFileError> {
        let configuration = configuration::read(&read_file(path)?)?;
        let needs_service = configuration.services().next().is_some();
        match needs_service && !keelson_storage::HAS_KMS {
            true => Err(EncryptionFileError::WithoutServices),
            false => Ok(configuration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Configuration, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("encryption.yaml");
        std::fs::write(&path, text).unwrap();
        EncryptionFile::open(&path, false)
            .map(|file| file.configuration)
            .map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
    }

    const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n";

    #[test]
    fn files_are_yaml_or_json() {
        let yaml = format!("{HEAD}- resources: [secrets]\n  providers:\n  - identity: {{}}\n");
        let json = r#"{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration",
                       "resources":[{"resources":["secrets"],"providers":[{"identity":{}}]}]}"#;
        assert_eq!(read(&yaml), read(json));
        assert!(read(&yaml).is_ok());
    }

    #[test]
    fn mistakes_name_the_file_and_the_field() {
        let kms = |timeout: &str| {
            let kms = "apiVersion: v2, name: a, endpoint: 'unix:///x'";
            format!("{HEAD}- resources: [secrets]\n  providers:\n  - kms: {{{kms}, timeout: {timeout}}}\n")
        };
        for (text, error) in [
            (String::new(), "the file is empty"),
            (
                format!("{HEAD}- resources: []\n"),
                "[resources[0].resources: Required value: at least one resources[0].resources is required, \
                 resources[0].providers: Required value: at least one resources[0].providers is required]",
            ),
            (
                format!("{HEAD}- resources: [secrets]\n  resources: [pods]\n"),
                "strict decoding error: yaml: unmarshal errors:\n  line 5: key \"resources\" already set in map",
            ),
            (
                kms("-1s"),
                "resources[0].providers[0].kms.timeout: Invalid value: \"-1s\": timeout should be a positive value",
            ),
            (kms("soon"), "time: invalid duration \"soon\""),
        ] {
            let shown = read(&text).unwrap_err();
            assert_eq!(shown, format!("--encryption-provider-config: FILE: {error}"), "{text}");
        }
        assert!(read(&kms("100ms")).is_ok());
    }
}
