//! Logging options.

use super::OptionError;
use super::values;

pub(super) const SECTION: &str = "Logs flags";

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Logs {
    /// The form of log lines: text or json.
    #[arg(long, value_name = "string", default_value = "text")]
    pub logging_format: String,

    /// The detail of the log: from 4 on debugging, from 6 on everything, from 8 on that of the libraries too.
    #[arg(long, short = 'v', value_name = "Level", default_value = "0", value_parser = values::integer)]
    pub v: i64,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

impl Logs {
    pub(super) fn format(&self) -> Result<Format, OptionError> {
        match self.logging_format.as_str() {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            other => Err(OptionError::flag(
                "--logging-format",
                format!("Invalid value: {other:?}: Unsupported log format"),
            )),
        }
    }
}
