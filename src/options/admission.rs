//! Admission options: which plug-ins are on, and the file that configures them.

mod file;

use std::path::PathBuf;

pub use file::{AdmissionFileError, Configurations};

use super::OptionError;

pub(super) const SECTION: &str = "Admission flags";
/// Configures plug-ins.
pub const FILE: &str = "--admission-control-config-file";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Admission {
    /// Admission plug-ins to switch on beside those that are on by default; their order here does not matter.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub enable_admission_plugins: Vec<String>,
    /// Admission plug-ins to switch off, although they are on by default.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub disable_admission_plugins: Vec<String>,
    /// Deprecated: the admission plug-ins that are on, and no others. The flags that enable and disable them say more.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub admission_control: Vec<String>,
    /// File with the configuration of admission plug-ins (AdmissionConfiguration of apiserver.config.k8s.io/v1).
    #[arg(long, value_name = "string")]
    pub admission_control_config_file: Option<PathBuf>,
}

/// Names of plug-ins; which ones there are is known where the server is put together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdmissionSettings {
    /// On beside those that are by default.
    pub on: Vec<String>,
    /// Off, although they are on by default.
    pub off: Vec<String>,
    /// These are on, and no others.
    pub exactly: Option<Vec<String>>,
    /// What their file says of them.
    pub configurations: Option<Configurations>,
}

impl Admission {
    /// One that is switched on and off is a mistake.
    pub(super) fn complete(&self) -> Result<AdmissionSettings, OptionError> {
        let (on, off) = (&self.enable_admission_plugins, &self.disable_admission_plugins);
        let exactly = Some(&self.admission_control).filter(|names| !names.is_empty());
        if exactly.is_some() && !(on.is_empty() && off.is_empty()) {
            let text =
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive";
            return Err(OptionError::flag("--admission-control", text));
        }
        let both: Vec<&str> = on
            .iter()
            .filter(|name| off.contains(name))
            .map(String::as_str)
            .collect();
        if !both.is_empty() {
            let text = format!(
                "[{}] in enable-admission-plugins and disable-admission-plugins overlapped",
                both.join(" ")
            );
            return Err(OptionError::flag("--enable-admission-plugins", text));
        }
        let file = self.admission_control_config_file.as_ref();
        let read = file.map(|path| Configurations::read(path).map_err(|why| OptionError::file(FILE, path, why)));
        Ok(AdmissionSettings {
            on: on.clone(),
            off: off.clone(),
            exactly: exactly.cloned(),
            configurations: read.transpose()?,
        })
    }
}
