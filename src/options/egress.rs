//! Egress: the way that the server's own connections take.

use std::path::PathBuf;

use keelson_configuration::read_file;
use keelson_net::client::Egress;

use super::OptionError;

pub(super) const SECTION: &str = "Egress selector flags";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct EgressSelector {
    /// A file that says which way connections take, by what they are for (cluster, controlplane, etcd): directly, or
    /// through a proxy that is asked with CONNECT over TCP, TLS or a socket of this machine. Kind
    /// EgressSelectorConfiguration of apiserver.k8s.io/v1beta1. To etcd there is the direct way alone.
    #[arg(long, value_name = "string")]
    pub egress_selector_config_file: Option<PathBuf>,
}

impl EgressSelector {
    pub(super) fn complete(&self) -> Result<Egress, OptionError> {
        const FLAG: &str = "--egress-selector-config-file";
        let given = self.egress_selector_config_file.as_ref();
        let Some(path) = given.filter(|path| !path.as_os_str().is_empty()) else {
            return Ok(Egress::default());
        };
        let text = read_file(path).map_err(|error| OptionError::file(FLAG, path, error))?;
        Egress::read(&text).map_err(|error| OptionError::file(FLAG, path, error))
    }
}
