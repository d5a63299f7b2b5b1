//! Admission options: which plug-ins are on.

use super::OptionError;

pub(super) const SECTION: &str = "Admission flags";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Admission {
    /// Admission plug-ins to switch on beside those that are on by default; their order here does not matter.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub enable_admission_plugins: Vec<String>,
    /// Admission plug-ins to switch off, although they are on by default.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub disable_admission_plugins: Vec<String>,
}

/// Names of plug-ins; which ones there are is known where the server is put together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AdmissionSettings {
    pub on: Vec<String>,
    pub off: Vec<String>,
}

impl Admission {
    /// One that is switched on and off is a mistake.
    pub(super) fn complete(&self) -> Result<AdmissionSettings, OptionError> {
        let (on, off) = (&self.enable_admission_plugins, &self.disable_admission_plugins);
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
        Ok(AdmissionSettings {
            on: on.clone(),
            off: off.clone(),
        })
    }
}
