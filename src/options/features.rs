//! Features beside serving: profiling, contention, debug endpoints.

use keelson_server::settings::RequestSettings;

use super::{OptionError, values};

pub(super) const SECTION: &str = "Features flags";

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Features {
    /// Sort requests into priority levels by the FlowSchema and PriorityLevelConfiguration objects, so that they wait
    /// in fair queues when the server is busy. Without it, requests beyond the numbers of those in flight are turned
    /// away whoever sends them.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", value_parser = values::boolean)]
    pub enable_priority_and_fairness: bool,
}

impl Features {
    /// What the filter chain goes by, completed.
    pub(super) fn requests(&self, requests: RequestSettings) -> Result<RequestSettings, OptionError> {
        let priority_and_fairness = self.enable_priority_and_fairness;
        if priority_and_fairness && requests.max_reads == 0 && requests.max_writes == 0 {
            return Err(OptionError::flag(
                "--max-requests-inflight, --max-mutating-requests-inflight",
                "they must add up to something positive",
            ));
        }
        Ok(RequestSettings {
            priority_and_fairness,
            ..requests
        })
    }
}
