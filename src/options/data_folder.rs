//! The data folder: certificates, keys and tokens that the server makes for itself.

use std::path::{Path, PathBuf};

use super::OptionError;

pub(super) const SECTION: &str = "Data folder flags";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct DataFolder {
    /// The folder of everything that the server makes: keys and certificates, the admin's kubeconfig and the embedded
    /// store. It is made if absent. Default: a folder with the program's name below $XDG_DATA_HOME, or below
    /// ~/.local/share.
    #[arg(long, value_name = "string")]
    pub data_dir: Option<PathBuf>,

    /// The file that the admin's kubeconfig is written to. Default: kubeconfig in the data folder.
    #[arg(long, value_name = "string")]
    pub kubeconfig_out: Option<PathBuf>,
}

impl DataFolder {
    /// The folder, absolute. `lookup` reads an environment variable.
    pub(super) fn folder(
        &self,
        program: &str,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<PathBuf, OptionError> {
        if let Some(folder) = &self.data_dir {
            if folder.as_os_str().is_empty() {
                return Err(OptionError::flag("--data-dir", "must not be empty"));
            }
            return absolute("--data-dir", folder);
        }
        let set = |name: &str| {
            lookup(name)
                .filter(|value| Path::new(value).is_absolute())
                .map(PathBuf::from)
        };
        set("XDG_DATA_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".local/share")))
            .map(|base| base.join(program))
            .ok_or_else(|| {
                OptionError::flag(
                    "--data-dir",
                    "must be given, since neither $XDG_DATA_HOME nor $HOME is set",
                )
            })
    }

    /// The path of the admin's kubeconfig, absolute.
    pub(super) fn kubeconfig(&self, folder: &Path) -> Result<PathBuf, OptionError> {
        match &self.kubeconfig_out {
            None => Ok(folder.join("kubeconfig")),
            Some(path) if path.is_dir() => Err(OptionError::file("--kubeconfig-out", path, "is a folder")),
            Some(path) => absolute("--kubeconfig-out", path),
        }
    }
}

/// `path` as seen from the root, so that printed lines can be pasted anywhere.
pub(super) fn absolute(flag: &'static str, path: &Path) -> Result<PathBuf, OptionError> {
    std::path::absolute(path).map_err(|error| OptionError::file(flag, path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(variables: &[(&str, &str)]) -> Result<PathBuf, OptionError> {
        let lookup = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        DataFolder::default().folder("keelson", lookup)
    }

    #[test]
    fn default_follows_the_users_data_home() {
        assert_eq!(
            folder(&[("XDG_DATA_HOME", "/x"), ("HOME", "/h")]).unwrap(),
            Path::new("/x/keelson")
        );
        assert_eq!(folder(&[("HOME", "/h")]).unwrap(), Path::new("/h/.local/share/keelson"));
        assert_eq!(
            folder(&[("XDG_DATA_HOME", "x"), ("HOME", "/h")]).unwrap(),
            Path::new("/h/.local/share/keelson")
        );
        assert!(
            folder(&[])
                .unwrap_err()
                .to_string()
                .starts_with("--data-dir: must be given")
        );
    }
}
