//! Watches: events read line by line, in the foreground or beside later steps.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::sync::watch;

use crate::case::Watch;
use crate::client::{Client, Sent};
use crate::fault::Fault;
use crate::paths::lookup;

/// How long a step waits for a watch to be opened.
const OPENING: Duration = Duration::from_secs(5);

/// What a watch has sent so far.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    pub status: Option<u16>,
    pub events: Vec<Value>,
    ended: bool,
}

/// A watch that is being read. Dropped, it is closed.
pub struct Watching {
    seen: watch::Receiver<Seen>,
    reader: tokio::task::JoinHandle<()>,
}

impl Watching {
    /// Opens a watch and reads it.
    pub fn open(client: Arc<Client>, sent: Sent, how: Watch) -> Watching {
        let (tell, seen) = watch::channel(Seen::default());
        let reader = tokio::spawn(async move {
            // A watch that breaks has sent what it has sent.
            let _ = read(&client, &sent, &how, &tell).await;
            tell.send_modify(|seen| seen.ended = true);
        });
        Watching { seen, reader }
    }

    /// Waits until the answer has begun.
    pub async fn opened(&mut self) {
        self.wait(OPENING, |seen| seen.status.is_some()).await;
    }

    /// Waits for so many events, if so many come in time; what was seen by then.
    pub async fn events(&mut self, count: usize, within: Duration) -> Seen {
        self.wait(within, |seen| seen.events.len() >= count).await;
        self.seen.borrow().clone()
    }

    async fn wait(&mut self, within: Duration, enough: impl Fn(&Seen) -> bool) {
        let done = self.seen.wait_for(|seen| seen.ended || enough(seen));
        let _ = tokio::time::timeout(within, done).await;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read(client: &Client, sent: &Sent, how: &Watch, tell: &watch::Sender<Seen>) -> Result<(), Fault> {
    let silence = Duration::try_from_secs_f64(how.timeout).map_err(Fault::unusable)?;
    let answer = tokio::time::timeout(silence, client.open(sent))
        .await
        .map_err(Fault::transport)??;
    tell.send_modify(|seen| seen.status = Some(answer.status().as_u16()));
    let mut body = answer.into_body();
    let mut unread: Vec<u8> = Vec::new();
    while let Some(more) = next(&mut body, silence).await? {
        unread.extend_from_slice(&more);
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            take(&line, how, tell)?;
        }
    }
    take(&unread, how, tell)
}

async fn next(body: &mut Incoming, silence: Duration) -> Result<Option<bytes::Bytes>, Fault> {
    loop {
        let frame = tokio::time::timeout(silence, body.frame())
            .await
            .map_err(Fault::transport)?;
        match frame.transpose().map_err(Fault::transport)? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn take(line: &[u8], how: &Watch, tell: &watch::Sender<Seen>) -> Result<(), Fault> {
    if line.trim_ascii().is_empty() {
        return Ok(());
    }
    let event: Value = serde_json::from_slice(line).map_err(Fault::transport)?;
    if !(how.no_bookmarks && is_plain_bookmark(&event)) {
        tell.send_modify(|seen| seen.events.push(event));
    }
    Ok(())
}

/// Bookmarks come when they please, but for the one that ends the initial events.
fn is_plain_bookmark(event: &Value) -> bool {
    let annotations = lookup(event, "object.metadata.annotations");
    event["type"] == "BOOKMARK"
        && annotations.is_none_or(|annotations| annotations.as_object().is_none_or(|a| a.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(no_bookmarks: bool, text: &str) -> (Vec<Value>, bool) {
        let how = json!({"noBookmarks": no_bookmarks});
        let how: Watch = serde_json::from_value(how).unwrap();
        let (tell, seen) = watch::channel(Seen::default());
        let well = text.lines().all(|line| take(line.as_bytes(), &how, &tell).is_ok());
        (seen.borrow().events.clone(), well)
    }

    #[test]
    fn each_line_is_an_event_and_some_bookmarks_may_be_dropped() {
        let last =
            json!({"type": "BOOKMARK", "object": {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}});
        let plain = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}});
        let text = format!("{plain}\n\n{last}");
        assert_eq!(lines(true, &text), (vec![last.clone()], true));
        assert_eq!(lines(false, &text), (vec![plain, last], true));
        assert!(!lines(false, "no json").1);
    }
}
