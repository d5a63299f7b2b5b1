//! The server's audit log: the events of a case that fit its expressions.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fault::Fault;
use crate::paths::fits;

const PAUSE: Duration = Duration::from_millis(50);

/// Which events are read.
pub struct Question<'a> {
    /// Path in an event to regular expression.
    pub expressions: &'a BTreeMap<String, String>,
    /// Only lines that mention one of these are events of the case.
    pub marks: &'a [&'a str],
    /// So many events are waited for,
    pub least: usize,
    /// for so long.
    pub within: Duration,
}

/// The events in the log that fit, as many as there are by then.
pub async fn events(log: &Path, question: &Question<'_>) -> Result<Vec<Value>, Fault> {
    let deadline = Instant::now() + question.within;
    loop {
        let text = std::fs::read(log).map_err(|error| Fault::unusable(format!("{}: {error}", log.display())))?;
        let found = fitting(&String::from_utf8_lossy(&text), question)?;
        if found.len() >= question.least || Instant::now() > deadline {
            return Ok(found);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn fitting(text: &str, question: &Question<'_>) -> Result<Vec<Value>, Fault> {
    // What follows the last end of a line is still being written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let marked = whole
        .lines()
        .filter(|line| question.marks.iter().any(|mark| line.contains(mark)));
    let events: Result<Vec<Value>, _> = marked.map(serde_json::from_str).collect();
    let mut events = events.map_err(|error| Fault::unusable(format!("audit log: {error}")))?;
    events.retain(|event| fits(event, question.expressions));
    Ok(events)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_whole_lines_that_mention_the_case_and_fit() {
        let text =
            "{\"verb\":\"get\",\"user\":\"a-u1\"}\n{\"verb\":\"list\",\"user\":\"a-u1\"}\n{\"verb\":\"get\"}\n{\"ve";
        let expressions = BTreeMap::from([("verb".to_owned(), "^get$".to_owned())]);
        let question = Question {
            expressions: &expressions,
            marks: &["u1", "t1"],
            least: 1,
            within: Duration::ZERO,
        };
        assert_eq!(
            fitting(text, &question).unwrap(),
            [json!({"verb": "get", "user": "a-u1"})]
        );
        assert!(fitting("{u1\n", &question).is_err());
    }
}
