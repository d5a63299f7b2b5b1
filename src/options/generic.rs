//! Generic server options: request limits, CORS, headers, graceful shutdown.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::http::header::HeaderValue;
use keelson_machinery::time;
use keelson_server::settings::{RequestSettings, ShutdownSettings};
use regex::Regex;

use super::{OptionError, values};

pub(super) const SECTION: &str = "Generic flags";

/// The largest value of --goaway-chance: above it clients would do little else than connect.
const MAX_GOAWAY_CHANCE: f64 = 0.02;

#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = SECTION)]
pub struct Generic {
    /// The address by which other machines reach the server. Default: the one to listen on, or, where that is a
    /// loopback one or 0.0.0.0, the one of the interface that leads outwards.
    #[arg(long, value_name = "ip", value_parser = values::ip)]
    pub advertise_address: Option<IpAddr>,

    /// Origins whose scripts may use the API (CORS), with commas between, as regular expressions. Each must pin the
    /// whole host: with ^ or // in front of it, and $ or a colon behind it.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub cors_allowed_origins: Vec<String>,

    /// With which probability a request on HTTP/2 ends its connection in an orderly way, so that clients spread over
    /// the servers behind a balancer: 0 never, 0.02 at most.
    #[arg(long, value_name = "float", default_value = "0", value_parser = values::float)]
    pub goaway_chance: f64,

    /// How long start-up may take before /livez fails because of it.
    #[arg(long, value_name = "duration", default_value = "0s", value_parser = values::duration)]
    pub livez_grace_period: time::Duration,

    /// How many requests that may change something are served at once; others get 429. 0: any number. With priority and
    /// fairness, this and the limit of those that only read are together the number of seats that its levels share.
    #[arg(long, value_name = "int", default_value = "200", value_parser = values::integer)]
    pub max_mutating_requests_inflight: i64,

    /// How many requests that only read are served at once; others get 429. 0: any number. Watches don't count.
    /// With priority and fairness, see above.
    #[arg(long, value_name = "int", default_value = "400", value_parser = values::integer)]
    pub max_requests_inflight: i64,

    /// How many seconds a watch whose client does not say how long it shall last goes on at least; at most twice as
    /// long.
    #[arg(long, value_name = "int", default_value = "1800", value_parser = values::integer)]
    pub min_request_timeout: i64,

    /// How long a request may take, unless it is a watch or another stream. Clients may ask for less.
    #[arg(long, value_name = "duration", default_value = "1m0s", value_parser = values::duration)]
    pub request_timeout: time::Duration,

    /// How long the server goes on as before when it is told to end, but for /readyz, which fails from then on.
    #[arg(long, value_name = "duration", default_value = "0s", value_parser = values::duration)]
    pub shutdown_delay_duration: time::Duration,

    /// Answer new requests with 429 and Retry-After until those under way have ended, rather than to take no
    /// connections.
    #[arg(long, value_name = "bool", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value = "false", value_parser = values::boolean)]
    pub shutdown_send_retry_after: bool,

    /// The time over which open watches end when the server does; 0: all at once.
    #[arg(long, value_name = "duration", default_value = "0s", value_parser = values::duration)]
    pub shutdown_watch_termination_grace_period: time::Duration,

    /// Directives of the Strict-Transport-Security header, with commas between; none: no header.
    #[arg(long, value_name = "strings", value_delimiter = ',')]
    pub strict_transport_security_directives: Vec<String>,
}

impl Generic {
    /// What the filter chain and the shutdown go by.
    pub(super) fn requests(&self) -> Result<RequestSettings, OptionError> {
        let timeout = not_negative("--request-timeout", self.request_timeout)?;
        if timeout.is_zero() {
            return Err(OptionError::flag("--request-timeout", "must be greater than 0"));
        }
        Ok(RequestSettings {
            timeout,
            min_watch: Duration::from_secs(count("--min-request-timeout", self.min_request_timeout)?),
            priority_and_fairness: true,
            max_reads: places("--max-requests-inflight", self.max_requests_inflight)?,
            max_writes: places("--max-mutating-requests-inflight", self.max_mutating_requests_inflight)?,
            strict_transport: self.strict_transport()?,
            allowed_origins: self.origins()?,
            livez_grace: not_negative("--livez-grace-period", self.livez_grace_period)?,
            shutdown: ShutdownSettings {
                delay: not_negative("--shutdown-delay-duration", self.shutdown_delay_duration)?,
                send_retry_after: self.shutdown_send_retry_after,
                watch_grace: not_negative(
                    "--shutdown-watch-termination-grace-period",
                    self.shutdown_watch_termination_grace_period,
                )?,
            },
        })
    }

    /// The probability of --goaway-chance; `None` for 0.
    pub(super) fn goaway(&self) -> Result<Option<f64>, OptionError> {
        match self.goaway_chance {
            0.0 => Ok(None),
            chance if chance > 0.0 && chance <= MAX_GOAWAY_CHANCE => Ok(Some(chance)),
            _ => {
                let reason = "can not be less than 0 or greater than 0.02";
                Err(OptionError::flag("--goaway-chance", reason))
            }
        }
    }

    fn strict_transport(&self) -> Result<Option<HeaderValue>, OptionError> {
        const FLAG: &str = "--strict-transport-security-directives";
        let directives = &self.strict_transport_security_directives;
        let known = |directive: &String| {
            directive.starts_with("max-age=") || matches!(directive.as_str(), "includeSubDomains" | "preload")
        };
        let value = HeaderValue::from_str(&directives.join("; "));
        match value {
            _ if directives.is_empty() => Ok(None),
            Ok(value) if directives.iter().all(known) => Ok(Some(value)),
            _ => Err(OptionError::flag(
                FLAG,
                "invalid, allowed values: max-age=expireTime, includeSubDomains, preload. \
                 see https://tools.ietf.org/html/rfc6797#section-6.1 for more information",
            )),
        }
    }

    fn origins(&self) -> Result<Vec<Regex>, OptionError> {
        let wrong = |reason: String| {
            let reason = format!("has an invalid regular expression: {reason}");
            OptionError::flag("--cors-allowed-origins", reason)
        };
        let compile = |text: &String| match Regex::new(text) {
            Err(error) => Err(wrong(format!("{text}: {}", last_line(&error.to_string())))),
            Ok(_) if !pins_host(text) => Err(wrong(format!(
                "{text}: regular expression does not pin to start/end of host in the origin header"
            ))),
            Ok(regex) => Ok(regex),
        };
        self.cors_allowed_origins.iter().map(compile).collect()
    }
}

/// Whether an expression says where the host of an origin begins and ends, so that no longer name matches it.
fn pins_host(expression: &str) -> bool {
    let host = match expression.rsplit_once("//") {
        Some((_, host)) => host,
        None if expression.starts_with('^') => expression,
        None => return false,
    };
    let end = host.trim_end_matches(')');
    let pin = |end: &str| end.ends_with('$') && !end.ends_with(r"\$") || end.ends_with(':');
    // Of alternatives at the end each must be a pin.
    match host.rsplit_once('(').filter(|_| host.ends_with(')')) {
        Some((_, alternatives)) => alternatives.trim_end_matches(')').split('|').all(pin),
        None => pin(end),
    }
}

/// The reason at the end of an error that draws the expression.
fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

fn not_negative(flag: &'static str, span: time::Duration) -> Result<Duration, OptionError> {
    u64::try_from(span.as_nanos())
        .map(Duration::from_nanos)
        .map_err(|_| OptionError::flag(flag, "can not be negative value"))
}

fn count(flag: &'static str, number: i64) -> Result<u64, OptionError> {
    u64::try_from(number).map_err(|_| OptionError::flag(flag, "can not be negative value"))
}

fn places(flag: &'static str, number: i64) -> Result<usize, OptionError> {
    usize::try_from(number).map_err(|_| OptionError::flag(flag, "can not be negative value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_must_pin_their_host() {
        for (expression, pinned) in [
            (r"//example\.com(:|$)", true),
            (r"^https://example\.com(:|$)", true),
            (r"^https://example\.com$", true),
            (r"//(a|b)\.example\.com:", true),
            ("example.com", false),
            ("^https://example.com", false),
            ("//example.com", false),
            ("example.com$", false),
            (r"//example\.com(:|x)", false),
        ] {
            assert_eq!(pins_host(expression), pinned, "{expression}");
        }
    }
}
