//! The options of logs and streams, as they come in the query.

use keelson_access::request_info::Query;
use keelson_api::core::v1::PodLogOptions;
use keelson_machinery::field::text::quote;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::status::StatusError;
use keelson_machinery::time::{Time, TimeError};

/// The options of a log; the error says what can't be read.
pub fn parse(query: &Query) -> Result<PodLogOptions, StatusError> {
    let bad = |error: TimeError| StatusError::bad_request(error.to_string());
    let since_time = query.get("sinceTime").map(Time::parse).transpose().map_err(bad)?;
    Ok(PodLogOptions {
        container: query.get("container").unwrap_or_default().to_owned(),
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        since_seconds: number(query, "sinceSeconds")?,
        since_time,
        timestamps: query.flag("timestamps"),
        tail_lines: number(query, "tailLines")?,
        limit_bytes: number(query, "limitBytes")?,
        insecure_skip_tls_verify_backend: query.flag("insecureSkipTLSVerifyBackend"),
        stream: query.get("stream").map(str::to_owned),
    })
}

fn number(query: &Query, key: &str) -> Result<Option<i64>, StatusError> {
    let Some(text) = query.get(key) else { return Ok(None) };
    match text.parse() {
        Ok(n) => Ok(Some(n)),
        Err(_) => Err(StatusError::bad_request(format!(
            "strconv.ParseInt: parsing {}: {}",
            quote(text),
            fault(text)
        ))),
    }
}

/// Why a number can't be read: digits that can't mean too many of them.
fn fault(text: &str) -> &'static str {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    match !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        true => "value out of range",
        false => "invalid syntax",
    }
}

/// The options as a kubelet is asked with them: with the question mark, sorted by name.
pub fn kubelet_query(options: &PodLogOptions) -> String {
    let flag = |set: bool| set.then(|| "true".to_owned());
    let number = |number: Option<i64>| number.map(|n| n.to_string());
    let since = options
        .since_time
        .as_ref()
        .map(|time| time.to_string().replace(':', "%3A"));
    let pairs = [
        ("follow", flag(options.follow)),
        ("limitBytes", number(options.limit_bytes)),
        ("previous", flag(options.previous)),
        ("sinceSeconds", number(options.since_seconds)),
        ("sinceTime", since),
        ("tailLines", number(options.tail_lines)),
        ("timestamps", flag(options.timestamps)),
    ];
    let mut text = String::new();
    for (name, value) in pairs {
        let Some(value) = value else { continue };
        text.push(if text.is_empty() { '?' } else { '&' });
        text.extend([name, "=", &value]);
    }
    text
}

/// The ports of a port-forward.
pub fn ports(query: &Query) -> Result<Vec<u16>, StatusError> {
    let read = |text: &str| {
        text.parse().map_err(|_| {
            StatusError::bad_request(format!(
                "cannot convert to []int32: strconv.ParseUint: parsing {}: {}",
                quote(text),
                fault(text)
            ))
        })
    };
    query.all("ports").map(read).collect()
}

/// Faults of the options of a log.
pub fn validate(options: &PodLogOptions) -> ErrorList {
    let mut errors = ErrorList::default();
    if let Some(lines) = options.tail_lines.filter(|n| *n < 0) {
        let text = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&Path::new("tailLines"), lines, text));
    }
    errors.extend(positive("limitBytes", options.limit_bytes));
    if options.since_seconds.is_some() && options.since_time.is_some() {
        let text = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(FieldError::forbidden(&Path::new("[]"), text));
    } else {
        errors.extend(positive("sinceSeconds", options.since_seconds));
    }
    if options.stream.is_some() {
        errors.push(FieldError::forbidden(&Path::new("stream"), "may not be specified"));
    }
    errors
}

fn positive(field: &'static str, value: Option<i64>) -> Option<FieldError> {
    let value = value.filter(|v| *v < 1)?;
    Some(FieldError::invalid(&Path::new(field), value, "must be greater than 0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lines;

    #[test]
    fn options_have_bounds() {
        for (query, want) in [
            ("", ""),
            ("tailLines=0&limitBytes=1&sinceSeconds=1", ""),
            (
                "tailLines=-1&limitBytes=0&sinceSeconds=0&stream=x",
                "tailLines: Invalid value: -1: must be greater than or equal to 0\n\
                 limitBytes: Invalid value: 0: must be greater than 0\n\
                 sinceSeconds: Invalid value: 0: must be greater than 0\n\
                 stream: Forbidden: may not be specified",
            ),
            (
                "sinceSeconds=0&sinceTime=2020-01-01T00:00:00Z",
                "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            ),
        ] {
            let options = parse(&Query::parse(query)).unwrap();
            assert_eq!(lines(&validate(&options)), want, "{query}");
        }
    }

    #[test]
    fn a_kubelet_is_asked_with_the_options_that_are_set() {
        for (query, want) in [
            ("container=c", ""),
            ("follow=true", "?follow=true"),
            (
                "timestamps=1&tailLines=3&previous=true&sinceTime=2020-01-01T00:00:00Z",
                "?previous=true&sinceTime=2020-01-01T00%3A00%3A00Z&tailLines=3&timestamps=true",
            ),
        ] {
            assert_eq!(kubelet_query(&parse(&Query::parse(query)).unwrap()), want, "{query}");
        }
    }

    #[test]
    fn what_is_no_number_is_named() {
        for (query, want) in [
            ("tailLines=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
            ("limitBytes=", "strconv.ParseInt: parsing \"\": invalid syntax"),
            (
                "tailLines=9223372036854775808",
                "strconv.ParseInt: parsing \"9223372036854775808\": value out of range",
            ),
        ] {
            assert_eq!(parse(&Query::parse(query)).err().unwrap().message, want);
        }
        assert_eq!(ports(&Query::parse("ports=80&ports=81")).unwrap(), [80, 81]);
        assert!(ports(&Query::parse("ports=x")).is_err());
    }
}
