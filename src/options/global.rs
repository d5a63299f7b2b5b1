//! `--help` and `--version`.

pub(super) const SECTION: &str = "Global flags";

#[derive(clap::Args, Debug, Default, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Global {
    /// Print this text and exit.
    #[arg(long, short = 'h')]
    pub help: bool,

    /// Print the version and exit; --version=raw prints it in all detail.
    #[arg(long, value_name = "version", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub version: Option<String>,
}
