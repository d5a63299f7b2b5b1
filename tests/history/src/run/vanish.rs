//! Clients that leave: before their request is sent as a whole, before its answer, or in the middle of that.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use rand::Rng;
use rand::rngs::SmallRng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Shared;
use super::client::{Client, Failure, Target};
use super::object::Kind;
use super::world::Phase;
use super::writers::{Manner, Sent};

/// One request in so many is left, and as many are in a hurry.
const ONE_IN: u32 = 12;
/// A hurried request has up to so many milliseconds.
const HURRY: u64 = 8;
/// Who leaves after the request waits up to so many milliseconds before that.
const LINGER: u64 = 8;
/// The pause between two reads that are left, in milliseconds.
const PAUSE: u64 = 100;
/// Bytes of an answer that are read at most by who leaves in the middle of it.
const SOME: usize = 20_000;

/// When a client leaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cut {
    /// When this part of 256 of its request is sent.
    Request(u8),
    /// So many milliseconds after its request.
    Answer(u64),
    /// When it has so many bytes of the answer.
    Amid(usize),
}

/// How a client sends its next request.
pub fn manner(rng: &mut SmallRng) -> Manner {
    match rng.random_range(0..ONE_IN) {
        0 => leaving(rng),
        1 => Manner::Hurried(rng.random_range(1..=HURRY)),
        _ => Manner::Patient,
    }
}

/// A client that leaves.
pub fn leaving(rng: &mut SmallRng) -> Manner {
    Manner::Vanishing(cut(rng))
}

fn cut(rng: &mut SmallRng) -> Cut {
    match rng.random_range(0..4) {
        0 => Cut::Request(rng.random()),
        1 => Cut::Amid(rng.random_range(1..SOME)),
        _ => Cut::Answer(rng.random_range(0..=LINGER)),
    }
}

/// Sends a request as far as the client stays, and leaves.
pub async fn send(target: &Arc<Target>, sent: &Sent, cut: Cut) -> Failure {
    let Some(mut stream) = Client::new(target.clone(), false).open().await else {
        return Failure::NotSent;
    };
    let Sent {
        method,
        path,
        kind,
        body,
    } = sent;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\ncontent-type: {kind}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let bytes = format!("{head}{body}").into_bytes();
    let count = match cut {
        // never all of it
        Cut::Request(part) => bytes.len() * usize::from(part) / 256,
        Cut::Answer(_) | Cut::Amid(_) => bytes.len(),
    };
    // A server that ends the connection early may have read it all nevertheless.
    let _ = stream.write_all(&bytes[..count]).await;
    let _ = stream.flush().await;
    match cut {
        Cut::Request(_) => return Failure::NotSent,
        Cut::Answer(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
        Cut::Amid(count) => {
            let mut part = vec![0; count];
            // An answer may be shorter.
            let _ = tokio::time::timeout(Duration::from_secs(1), stream.read_exact(&mut part)).await;
        }
    }
    Failure::Lost
}

/// Lists and watches that nobody reads to their end.
pub async fn read(world: Shared, mut rng: SmallRng) {
    let kinds: Vec<Kind> = world.lanes.iter().map(|lane| lane.kind).collect();
    while world.phase() == Phase::Running {
        let target = &world.targets[rng.random_range(0..world.targets.len())];
        let kind = kinds[rng.random_range(0..kinds.len())];
        let query = [
            "",
            "?watch=1",
            "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            "?limit=2",
        ];
        let sent = Sent {
            method: Method::GET,
            path: format!("{}{}", kind.path(), query[rng.random_range(0..query.len())]),
            kind: "application/json",
            body: String::new(),
        };
        send(target, &sent, cut(&mut rng)).await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..=PAUSE))).await;
    }
}
