//! Audit options: policy, log and webhook.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use keelson_configuration::read_file;
use keelson_machinery::time;
use keelson_net::client::Dialer;
use keelson_server::audit::sink::{Batching, Format, LogSettings, Mode, Rotation, Truncation, WebhookSettings};
use keelson_server::audit::{AuditSettings, Policy};

use super::{OptionError, values};

pub(super) const SECTION: &str = "Auditing flags";

const VERSIONS: [&str; 1] = ["audit.k8s.io/v1"];
const POLICY: &str = "--audit-policy-file";
/// Bytes of a megabyte of `--audit-log-maxsize`.
const MEGABYTE: u64 = 1 << 20;
/// Megabytes of a file when the flag says 0.
const DEFAULT_MEGABYTES: u64 = 100;

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Audit {
    /// The file (audit.k8s.io/v1 Policy, YAML or JSON) that says how much is recorded of which request. Without it
    /// nothing is.
    #[arg(long, value_name = "string")]
    pub audit_policy_file: Option<OsString>,

    /// Where events are written, one a line: a file, or - for standard output. Without it there is no log.
    #[arg(long, value_name = "string")]
    pub audit_log_path: Option<OsString>,

    /// The form of a line: json, or legacy, which has words and quoted values and no objects.
    #[arg(long, value_name = "string", default_value = "json")]
    pub audit_log_format: String,

    /// The version of events in JSON.
    #[arg(long, value_name = "string", default_value = "audit.k8s.io/v1")]
    pub audit_log_version: String,

    /// Whether answers wait until their events are written: blocking does; batch collects events and drops those that
    /// its buffer has no room for; blocking-strict also refuses requests whose beginning can't be recorded.
    #[arg(long, value_name = "string", default_value = "blocking")]
    pub audit_log_mode: String,

    /// Megabytes of a log file before it is put aside and another one begun. 0: 100.
    #[arg(long, value_name = "int", default_value = "100", value_parser = values::integer)]
    pub audit_log_maxsize: i64,

    /// How many files that were put aside are kept. 0: all.
    #[arg(long, value_name = "int", default_value = "100", value_parser = values::integer)]
    pub audit_log_maxbackup: i64,

    /// How many days they are kept, by the time in their names. 0: for ever.
    #[arg(long, value_name = "int", default_value = "366", value_parser = values::integer)]
    pub audit_log_maxage: i64,

    /// Compress them with gzip.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", value_parser = values::boolean)]
    pub audit_log_compress: bool,

    /// Events that may wait to be written in batch mode.
    #[arg(long, value_name = "int", default_value = "10000", value_parser = values::integer)]
    pub audit_log_batch_buffer_size: i64,

    /// Events that are written together in batch mode.
    #[arg(long, value_name = "int", default_value = "1", value_parser = values::integer)]
    pub audit_log_batch_max_size: i64,

    /// How long an event waits for others in batch mode.
    #[arg(long, value_name = "duration", default_value = "0s", value_parser = values::duration)]
    pub audit_log_batch_max_wait: time::Duration,

    /// Limit how often is written in batch mode.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", value_parser = values::boolean)]
    pub audit_log_batch_throttle_enable: bool,

    /// Writes a second, if they are limited.
    #[arg(long, value_name = "float32", default_value = "0", value_parser = values::float)]
    pub audit_log_batch_throttle_qps: f64,

    /// Writes at once after a rest, if they are limited.
    #[arg(long, value_name = "int", default_value = "0", value_parser = values::integer)]
    pub audit_log_batch_throttle_burst: i64,

    /// Leave the objects out of events that are too large; drop events that are too large even so.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", value_parser = values::boolean)]
    pub audit_log_truncate_enabled: bool,

    /// Bytes of an event that is not too large.
    #[arg(long, value_name = "int", default_value = "102400", value_parser = values::integer)]
    pub audit_log_truncate_max_event_size: i64,

    /// Bytes of events that are handed on together; as each is handed on alone, it bounds nothing that the size of an
    /// event does not, and must be at least that.
    #[arg(long, value_name = "int", default_value = "10485760", value_parser = values::integer)]
    pub audit_log_truncate_max_batch_size: i64,

    /// A file in kubectl's form whose current context names the server that events are sent to.
    #[arg(long, value_name = "string")]
    pub audit_webhook_config_file: Option<OsString>,

    /// The version of events that are sent.
    #[arg(long, value_name = "string", default_value = "audit.k8s.io/v1")]
    pub audit_webhook_version: String,

    /// Whether answers wait until their events are sent: as with the log.
    #[arg(long, value_name = "string", default_value = "batch")]
    pub audit_webhook_mode: String,

    /// How long to wait before events that did not get through are sent again.
    #[arg(long, value_name = "duration", default_value = "10s", value_parser = values::duration,
          alias = "audit-webhook-batch-initial-backoff")]
    pub audit_webhook_initial_backoff: time::Duration,

    /// Events that may wait to be sent in batch mode.
    #[arg(long, value_name = "int", default_value = "10000", value_parser = values::integer)]
    pub audit_webhook_batch_buffer_size: i64,

    /// Events that are sent together in batch mode.
    #[arg(long, value_name = "int", default_value = "400", value_parser = values::integer)]
    pub audit_webhook_batch_max_size: i64,

    /// How long an event waits for others in batch mode.
    #[arg(long, value_name = "duration", default_value = "30s", value_parser = values::duration)]
    pub audit_webhook_batch_max_wait: time::Duration,

    /// Limit how often is sent in batch mode.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "true", value_parser = values::boolean)]
    pub audit_webhook_batch_throttle_enable: bool,

    /// Requests a second, if they are limited.
    #[arg(long, value_name = "float32", default_value = "10", value_parser = values::float)]
    pub audit_webhook_batch_throttle_qps: f64,

    /// Requests at once after a rest, if they are limited.
    #[arg(long, value_name = "int", default_value = "15", value_parser = values::integer)]
    pub audit_webhook_batch_throttle_burst: i64,

    /// Leave the objects out of events that are too large; drop events that are too large even so.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", value_parser = values::boolean)]
    pub audit_webhook_truncate_enabled: bool,

    /// Bytes of an event that is not too large.
    #[arg(long, value_name = "int", default_value = "102400", value_parser = values::integer)]
    pub audit_webhook_truncate_max_event_size: i64,

    /// As with the log.
    #[arg(long, value_name = "int", default_value = "10485760", value_parser = values::integer)]
    pub audit_webhook_truncate_max_batch_size: i64,
}

impl Audit {
    /// Checks the flags and reads the policy.
    pub(super) fn settings(&self, warnings: &mut Vec<String>) -> Result<AuditSettings, OptionError> {
        let (log, webhook) = (self.log()?, self.webhook()?);
        let policy = self.policy(warnings)?;
        for (backend, given) in [("log", log.is_some()), ("webhook", webhook.is_some())] {
            if policy.is_none() && given {
                warnings.push(format!(
                    "No audit policy file provided, no events will be recorded for {backend} backend"
                ));
            }
        }
        Ok(AuditSettings { policy, log, webhook })
    }

    fn policy(&self, warnings: &mut Vec<String>) -> Result<Option<Policy>, OptionError> {
        let Some(path) = given(self.audit_policy_file.as_ref()) else {
            return Ok(None);
        };
        let text = read_file(&path).map_err(|error| OptionError::file(POLICY, &path, error))?;
        let (policy, problems) = Policy::read(&text).map_err(|why| OptionError::file(POLICY, &path, why))?;
        if !problems.is_empty() {
            warnings.push(format!(
                "{POLICY}: {}: passed over in the policy: {}",
                path.display(),
                problems.join(", ")
            ));
        }
        Ok(Some(policy))
    }

    fn log(&self) -> Result<Option<LogSettings>, OptionError> {
        let Some(path) = given(self.audit_log_path.as_ref()) else {
            return Ok(None);
        };
        let mode = Backend::LOG.mode(&self.audit_log_mode)?;
        let throttle = (self.audit_log_batch_throttle_qps, self.audit_log_batch_throttle_burst);
        Ok(Some(LogSettings {
            path: Some(path).filter(|path| path.as_os_str() != "-"),
            format: self.format()?,
            mode,
            batching: Backend::LOG.batching(
                mode,
                self.audit_log_batch_buffer_size,
                self.audit_log_batch_max_size,
                self.audit_log_batch_max_wait,
                self.audit_log_batch_throttle_enable.then_some(throttle),
            )?,
            truncation: Backend::LOG.truncation(
                self.audit_log_truncate_enabled,
                self.audit_log_truncate_max_event_size,
                self.audit_log_truncate_max_batch_size,
                &self.audit_log_version,
            )?,
            rotation: self.rotation()?,
        }))
    }

    fn webhook(&self) -> Result<Option<WebhookSettings>, OptionError> {
        let Some(config) = given(self.audit_webhook_config_file.as_ref()) else {
            return Ok(None);
        };
        let mode = Backend::WEBHOOK.mode(&self.audit_webhook_mode)?;
        let throttle = (
            self.audit_webhook_batch_throttle_qps,
            self.audit_webhook_batch_throttle_burst,
        );
        Ok(Some(WebhookSettings {
            config,
            dialer: Dialer::default(),
            mode,
            batching: Backend::WEBHOOK.batching(
                mode,
                self.audit_webhook_batch_buffer_size,
                self.audit_webhook_batch_max_size,
                self.audit_webhook_batch_max_wait,
                self.audit_webhook_batch_throttle_enable.then_some(throttle),
            )?,
            truncation: Backend::WEBHOOK.truncation(
                self.audit_webhook_truncate_enabled,
                self.audit_webhook_truncate_max_event_size,
                self.audit_webhook_truncate_max_batch_size,
                &self.audit_webhook_version,
            )?,
            initial_backoff: self.audit_webhook_initial_backoff.to_std(),
        }))
    }

    fn format(&self) -> Result<Format, OptionError> {
        match self.audit_log_format.as_str() {
            "json" => Ok(Format::Json),
            "legacy" => Ok(Format::Legacy),
            other => Err(OptionError::flag(
                "--audit-log-format",
                format!("invalid audit log format {other}, allowed formats are \"legacy,json\""),
            )),
        }
    }

    fn rotation(&self) -> Result<Rotation, OptionError> {
        let limit = |flag: &'static str, value: i64| {
            u64::try_from(value).map_err(|_| OptionError::flag(flag, format!("{value} can't be a negative number")))
        };
        let days = limit("--audit-log-maxage", self.audit_log_maxage)?;
        let files = limit("--audit-log-maxbackup", self.audit_log_maxbackup)?;
        let megabytes = match limit("--audit-log-maxsize", self.audit_log_maxsize)? {
            0 => DEFAULT_MEGABYTES,
            size => size,
        };
        Ok(Rotation {
            max_bytes: megabytes.saturating_mul(MEGABYTE),
            max_days: u32::try_from(days).unwrap_or(u32::MAX),
            max_files: usize::try_from(files).unwrap_or(usize::MAX),
            compress: self.audit_log_compress,
        })
    }
}

/// An empty path is none.
fn given(path: Option<&OsString>) -> Option<PathBuf> {
    path.filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Where no batches are made.
const UNBATCHED: Batching = Batching {
    buffer: 1,
    max_events: 1,
    max_wait: Duration::ZERO,
    throttle: None,
};

/// A place for events, as flags and their errors name it.
struct Backend {
    name: &'static str,
    mode: &'static str,
    version: &'static str,
    batch: &'static str,
    truncate: &'static str,
}

impl Backend {
    const WEBHOOK: Backend = Backend {
        name: "webhook",
        mode: "--audit-webhook-mode",
        version: "--audit-webhook-version",
        batch: "--audit-webhook-batch-*",
        truncate: "--audit-webhook-truncate-*",
    };
    const LOG: Backend = Backend {
        name: "log",
        mode: "--audit-log-mode",
        version: "--audit-log-version",
        batch: "--audit-log-batch-*",
        truncate: "--audit-log-truncate-*",
    };

    fn mode(&self, text: &str) -> Result<Mode, OptionError> {
        Mode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
            let known = Mode::ALL.map(Mode::name).join(",");
            let why = format!("invalid audit {} mode {text}, allowed modes are \"{known}\"", self.name);
            OptionError::flag(self.mode, why)
        })
    }

    /// What says how events are collected, where they are.
    fn batching(
        &self,
        mode: Mode,
        buffer: i64,
        max_events: i64,
        max_wait: time::Duration,
        throttle: Option<(f64, i64)>,
    ) -> Result<Batching, OptionError> {
        let wrong = |what: &str, value: String| {
            let why = format!(
                "invalid audit batch {} {what} {value}, must be a positive number",
                self.name
            );
            OptionError::flag(self.batch, why)
        };
        let positive = |what: &str, value: i64| {
            let number = usize::try_from(value).ok().filter(|number| *number > 0);
            number.ok_or_else(|| wrong(what, value.to_string()))
        };
        if mode != Mode::Batch {
            return Ok(UNBATCHED);
        }
        let throttle = match throttle {
            None => None,
            Some((qps, _)) if !qps.is_finite() || qps <= 0.0 => return Err(wrong("throttle QPS", qps.to_string())),
            Some((qps, burst)) => {
                let burst = positive("throttle burst", burst)?;
                Some((qps, u32::try_from(burst).unwrap_or(u32::MAX)))
            }
        };
        Ok(Batching {
            buffer: positive("buffer size", buffer)?,
            max_events: positive("max batch size", max_events)?,
            max_wait: max_wait.to_std(),
            throttle,
        })
    }

    fn truncation(
        &self,
        enabled: bool,
        max_event: i64,
        max_batch: i64,
        version: &str,
    ) -> Result<Option<Truncation>, OptionError> {
        if !VERSIONS.contains(&version) {
            let why = format!("invalid group version, allowed versions are {VERSIONS:?}");
            return Err(OptionError::flag(self.version, why));
        }
        if !enabled {
            return Ok(None);
        }
        let size = usize::try_from(max_event)
            .ok()
            .filter(|size| *size > 0)
            .ok_or_else(|| {
                let name = self.name;
                let why =
                    format!("invalid audit truncate {name} max event size {max_event}, must be a positive number");
                OptionError::flag(self.truncate, why)
            })?;
        if max_batch < max_event {
            let name = self.name;
            let why = format!(
                "invalid audit truncate {name} max batch size {max_batch}, must be greater than max event size ({max_event})"
            );
            return Err(OptionError::flag(self.truncate, why));
        }
        Ok(Some(Truncation { max_event: size }))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;

    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        audit: Audit,
    }

    fn settings(arguments: &[&str]) -> Result<(AuditSettings, Vec<String>), String> {
        let arguments = ["test"].iter().chain(arguments);
        let matches = Flags::command().try_get_matches_from(arguments).unwrap();
        let mut warnings = Vec::new();
        let settings = Flags::from_arg_matches(&matches).unwrap().audit.settings(&mut warnings);
        settings
            .map(|settings| (settings, warnings))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_those_of_kube_apiserver() {
        let (settings, warnings) = settings(&["--audit-log-path=/var/log/audit.log"]).unwrap();
        let log = settings.log.unwrap();
        assert_eq!((log.mode, log.format), (Mode::Blocking, Format::Json));
        assert_eq!(
            log.rotation,
            Rotation {
                max_bytes: 100 << 20,
                max_days: 366,
                max_files: 100,
                compress: false,
            }
        );
        assert_eq!(log.truncation, None);
        assert!(settings.policy.is_none());
        assert_eq!(
            warnings,
            ["No audit policy file provided, no events will be recorded for log backend"]
        );
    }

    #[test]
    fn flags_without_a_log_mean_nothing() {
        let (settings, warnings) = settings(&["--audit-log-path=", "--audit-log-mode=foo"]).unwrap();
        assert!(settings.log.is_none() && warnings.is_empty());
    }

    #[test]
    fn wrong_values_are_named() {
        for (arguments, why) in [
            (
                "--audit-log-mode=foo",
                r#"invalid audit log mode foo, allowed modes are "batch,blocking,blocking-strict""#,
            ),
            (
                "--audit-log-format=foo",
                r#"invalid audit log format foo, allowed formats are "legacy,json""#,
            ),
            (
                "--audit-log-maxage=-1",
                "--audit-log-maxage: -1 can't be a negative number",
            ),
            (
                "--audit-log-maxsize=-1",
                "--audit-log-maxsize: -1 can't be a negative number",
            ),
            (
                "--audit-log-maxbackup=-1",
                "--audit-log-maxbackup: -1 can't be a negative number",
            ),
            (
                "--audit-log-version=v2",
                r#"invalid group version, allowed versions are ["audit.k8s.io/v1"]"#,
            ),
            (
                "--audit-webhook-config-file=hook --audit-webhook-mode=x",
                r#"invalid audit webhook mode x, allowed modes are "batch,blocking,blocking-strict""#,
            ),
            (
                "--audit-webhook-config-file=hook --audit-webhook-batch-throttle-burst=0",
                "invalid audit batch webhook throttle burst 0, must be a positive number",
            ),
            (
                "--audit-log-mode=batch --audit-log-batch-buffer-size=0",
                "invalid audit batch log buffer size 0, must be a positive number",
            ),
            (
                "--audit-log-mode=batch --audit-log-batch-max-size=0",
                "invalid audit batch log max batch size 0, must be a positive number",
            ),
            (
                "--audit-log-mode=batch --audit-log-batch-throttle-enable --audit-log-batch-throttle-qps=0",
                "invalid audit batch log throttle QPS 0, must be a positive number",
            ),
            (
                "--audit-log-truncate-enabled --audit-log-truncate-max-event-size=0",
                "invalid audit truncate log max event size 0, must be a positive number",
            ),
            (
                "--audit-log-truncate-enabled --audit-log-truncate-max-batch-size=10 --audit-log-truncate-max-event-size=100",
                "invalid audit truncate log max batch size 10, must be greater than max event size (100)",
            ),
        ] {
            let arguments: Vec<&str> = ["--audit-log-path=x.log"]
                .into_iter()
                .chain(arguments.split(' '))
                .collect();
            let error = settings(&arguments).err().unwrap_or_default();
            assert!(error.ends_with(why), "{error}");
        }
    }

    #[test]
    fn policies_are_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let flag = format!("--audit-policy-file={}", file.path().display());
        let error = settings(&[&flag]).err().unwrap();
        assert!(
            error.starts_with("--audit-policy-file: ") && error.contains("unknown group version"),
            "{error}"
        );
        let text = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, more: 1}]\n";
        std::fs::write(file.path(), text).unwrap();
        let (settings, warnings) = settings(&[&flag]).unwrap();
        assert!(settings.policy.is_some());
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].ends_with(r#"passed over in the policy: unknown field "rules[0].more""#));
    }
}
