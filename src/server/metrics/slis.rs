//! `/metrics/slis`: what came of each health check, and how often, in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What came of one check of one endpoint.
#[derive(Clone, Copy, Default)]
struct Outcomes {
    /// The last one.
    is_well: bool,
    well: u64,
    ill: u64,
}

/// What came of all checks since the start, by check and endpoint.
#[derive(Default)]
pub(crate) struct HealthIndicators {
    seen: Mutex<BTreeMap<(String, &'static str), Outcomes>>,
}

impl HealthIndicators {
    /// Counts a check; names are those of the server's own checks, never a client's.
    pub(crate) fn observe(&self, check: &str, endpoint: &'static str, is_well: bool) {
        let mut seen = self.lock();
        let outcomes = seen.entry((check.to_owned(), endpoint)).or_default();
        outcomes.is_well = is_well;
        match is_well {
            true => outcomes.well += 1,
            false => outcomes.ill += 1,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, &'static str), Outcomes>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All series as text.
    pub(crate) fn encode(&self) -> String {
        let seen = self.lock();
        let mut text = String::new();
        if seen.is_empty() {
            return text;
        }
        text.push_str(
            "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single healthcheck.\n\
             # TYPE kubernetes_healthcheck gauge\n",
        );
        for ((check, endpoint), outcomes) in &*seen {
            let value = u8::from(outcomes.is_well);
            let _ = writeln!(
                text,
                "kubernetes_healthcheck{{name=\"{check}\",type=\"{endpoint}\"}} {value}"
            );
        }
        text.push_str(
            "# HELP kubernetes_healthchecks_total [STABLE] This metric records the results of all healthcheck.\n\
             # TYPE kubernetes_healthchecks_total counter\n",
        );
        for ((check, endpoint), outcomes) in &*seen {
            for (status, count) in [("error", outcomes.ill), ("success", outcomes.well)] {
                if count > 0 {
                    let labels = format!("name=\"{check}\",status=\"{status}\",type=\"{endpoint}\"");
                    let _ = writeln!(text, "kubernetes_healthchecks_total{{{labels}}} {count}");
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_counted_by_what_came_of_them() {
        let indicators = HealthIndicators::default();
        assert_eq!(indicators.encode(), "");
        indicators.observe("etcd", "readyz", false);
        indicators.observe("etcd", "readyz", true);
        indicators.observe("etcd", "readyz", true);
        indicators.observe("ping", "livez", false);
        let text = indicators.encode();
        let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            series,
            [
                r#"kubernetes_healthcheck{name="etcd",type="readyz"} 1"#,
                r#"kubernetes_healthcheck{name="ping",type="livez"} 0"#,
                r#"kubernetes_healthchecks_total{name="etcd",status="error",type="readyz"} 1"#,
                r#"kubernetes_healthchecks_total{name="etcd",status="success",type="readyz"} 2"#,
                r#"kubernetes_healthchecks_total{name="ping",status="error",type="livez"} 1"#,
            ]
        );
        assert!(text.contains("# TYPE kubernetes_healthchecks_total counter\n"));
    }
}
