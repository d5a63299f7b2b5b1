//! API enablement: `--runtime-config`.

use keelson_machinery::scheme::Scheme;
use keelson_server::discovery::RuntimeConfig;

use super::OptionError;

pub(super) const SECTION: &str = "API enablement flags";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct ApiEnablement {
    /// Turns API versions on or off, as <key>=true or <key>=false with commas between. A key is <group>/<version>, v1,
    /// or one of api/all, api/ga (v1, v2, …), api/beta (v1beta1, …) and api/alpha (v1alpha1, …).
    #[arg(long, value_name = "mapStringString", value_delimiter = ',')]
    pub runtime_config: Vec<String>,
}

impl ApiEnablement {
    /// What is switched on or off; groups that no scheme has are a mistake.
    pub(super) fn runtime_config(&self, schemes: &[&'static Scheme]) -> Result<RuntimeConfig, OptionError> {
        let fault = |error: keelson_server::discovery::RuntimeConfigError| {
            OptionError::flag("--runtime-config", error.to_string())
        };
        let config = RuntimeConfig::parse(self.runtime_config.iter().map(String::as_str)).map_err(fault)?;
        config.check(schemes).map_err(fault)?;
        Ok(config)
    }
}
