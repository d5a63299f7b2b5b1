//! Attacks with frames that no client's library would send: each costs its sender the connection, and others nothing.

use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::setting::{Http2, Server, limits, next, soon, text, until};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 0x77;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:method GET`, `:scheme http`, `:path /`, all from the static table.
const GET: [u8; 3] = [0x82, 0x86, 0x84];
const CANCEL: [u8; 4] = [0, 0, 0, 8];
const ENHANCE_YOUR_CALM: u32 = 11;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// What every client sends first.
fn greeting(settings: &[u8]) -> Vec<u8> {
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    out.extend(frame(SETTINGS, 0, 0, settings));
    out
}

/// `:method GET`, `:scheme http` and a path that is spelled out.
fn get(path: &str) -> Vec<u8> {
    let mut out = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    out.extend(path.as_bytes());
    out
}

/// Sends all of it, as far as the server lets it, and reads until the server closes: the error code of its GOAWAY.
async fn attack(server: &Server, sent: Vec<u8>) -> Option<u32> {
    let (mut read, mut write) = server.tcp().await.into_split();
    let flood = tokio::spawn(async move {
        let _ = write.write_all(&sent).await;
        write
    });
    let mut came = Vec::new();
    // The server may close while it has bytes of ours unread, which is a reset.
    let _ = soon(read.read_to_end(&mut came)).await;
    flood.abort();
    frames(&came)
        .into_iter()
        .rfind(|(kind, _)| *kind == GOAWAY)
        .map(|(_, payload)| {
            let code: [u8; 4] = payload[4..8].try_into().unwrap();
            u32::from_be_bytes(code)
        })
}

/// Kinds and payloads of the frames in `bytes`; a last one that is cut off is left out.
fn frames(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut found = Vec::new();
    while bytes.len() >= 9 {
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        let Some(payload) = bytes.get(9..9 + length) else { break };
        found.push((bytes[3], payload));
        bytes = &bytes[9 + length..];
    }
    found
}

/// A client with an open watch, beside which an attack goes on.
async fn neighbour(server: &Server) -> (Http2, hyper::body::Incoming) {
    let mut client = Http2::over(server.tcp().await).await;
    let mut watch = client.get("/watch").await.unwrap().into_body();
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "event\n");
    (client, watch)
}

async fn is_well(server: &Server, (mut client, mut watch): (Http2, hyper::body::Incoming)) {
    server.news.notify_waiters();
    server.news.notify_one();
    assert_eq!(next(&mut watch).await.unwrap().unwrap(), "event\n");
    assert_eq!(client.get("/fixed").await.unwrap().status(), 200);
    let mut newcomer = Http2::over(server.tcp().await).await;
    assert_eq!(newcomer.get("/fixed").await.unwrap().status(), 200);
}

/// HEADERS and RST_STREAM together, over and over: the flood of CVE-2023-44487.
#[tokio::test]
async fn rapid_resets_cost_their_sender_the_connection() {
    let server = Server::plain();
    let neighbour = neighbour(&server).await;
    let mut sent = greeting(&[]);
    for number in 0..20_000_u32 {
        sent.extend(frame(HEADERS, END_STREAM | END_HEADERS, number * 2 + 1, &GET));
        sent.extend(frame(RST_STREAM, 0, number * 2 + 1, &CANCEL));
    }
    assert_eq!(attack(&server, sent).await, Some(ENHANCE_YOUR_CALM));
    is_well(&server, neighbour).await;
}

/// A head without an end: the flood of RUSTSEC-2024-0332.
#[tokio::test]
async fn endless_continuations_cost_their_sender_the_connection() {
    let server = Server::plain();
    let neighbour = neighbour(&server).await;
    for size in [0, 1024, 16_384] {
        let mut sent = greeting(&[]);
        sent.extend(frame(HEADERS, END_STREAM, 1, &GET));
        // A literal header without a name in the table: name "a", and a value as long as the frame allows.
        let mut block = vec![0; size];
        if size > 0 {
            let length = size - 6;
            // A length above 126 is 127 and the rest in seven bits at a time.
            let rest = length - 127;
            block[..6].copy_from_slice(&[
                0x00,
                0x01,
                b'a',
                0x7f,
                0x80 | u8::try_from(rest & 0x7f).unwrap(),
                u8::try_from(rest >> 7).unwrap(),
            ]);
            block[6..].fill(b'v');
        }
        let count = (32_usize << 20).checked_div(size).unwrap_or(100_000);
        let more = frame(CONTINUATION, 0, 1, &block);
        (0..count).for_each(|_| sent.extend(&more));
        let ended = attack(&server, sent).await;
        assert!(ended.is_some(), "frames of {size}");
    }
    is_well(&server, neighbour).await;
}

/// Streams that are given up as soon as their handler has begun are counted as under way no longer, so the limit of
/// streams does not help; each costs its sender as much as an answered request.
#[tokio::test]
async fn handlers_of_given_up_streams_end() {
    let server = Server::plain();
    let mut stream = server.tcp().await;
    stream.write_all(&greeting(&[])).await.unwrap();
    for number in 0..300_u32 {
        let id = number * 2 + 1;
        let begun = server.seen.begun.load(Ordering::SeqCst);
        stream
            .write_all(&frame(HEADERS, END_STREAM | END_HEADERS, id, &get("/hang")))
            .await
            .unwrap();
        until(|| server.seen.begun.load(Ordering::SeqCst) > begun).await;
        stream.write_all(&frame(RST_STREAM, 0, id, &CANCEL)).await.unwrap();
    }
    until(|| server.seen.dropped.load(Ordering::SeqCst) == 300).await;
}

#[tokio::test]
async fn floods_of_pings_and_settings_are_answered_and_harm_nobody() {
    let server = Server::plain();
    // A window of this size or of nothing, a table of headers of another size each time.
    let (window, table) = (&[0, 4, 0, 0, 0xff, 0xff][..], &[0, 1, 0, 0, 0x10, 0][..]);
    for (kind, payload) in [
        (PING, &[0; 8][..]),
        (SETTINGS, &[]),
        (SETTINGS, window),
        (SETTINGS, table),
        (WINDOW_UPDATE, &[0, 0, 0, 1]),
        (UNKNOWN, &[0; 100]),
    ] {
        let neighbour = neighbour(&server).await;
        let (mut read, mut write) = server.tcp().await.into_split();
        write.write_all(&greeting(&[])).await.unwrap();
        let reading = tokio::spawn(async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await });
        let flood = frame(kind, 0, 0, payload).repeat(50_000);
        // It may be cut off for it.
        let _ = soon(write.write_all(&flood)).await;
        is_well(&server, neighbour).await;
        reading.abort();
    }
}

/// Priorities of streams that never come cost nothing to remember.
#[tokio::test]
async fn priorities_are_passed_over() {
    let server = Server::plain();
    let neighbour = neighbour(&server).await;
    let mut stream = server.tcp().await;
    stream.write_all(&greeting(&[])).await.unwrap();
    for number in 0..50_000_u32 {
        let flood = frame(PRIORITY, 0, number * 2 + 1, &[0, 0, 0, 0, 16]);
        soon(stream.write_all(&flood)).await.unwrap();
    }
    is_well(&server, neighbour).await;
    stream
        .write_all(&frame(HEADERS, END_STREAM | END_HEADERS, 100_001, &get("/fixed")))
        .await
        .unwrap();
    assert!(read_until_quiet(&mut stream).await.contains(&HEADERS));
}

/// Frames that say nothing, of a stream that was never opened to its end, and of one that has ended.
#[tokio::test]
async fn frames_without_content_cost_their_sender_the_connection() {
    let server = Server::plain();
    let neighbour = neighbour(&server).await;
    // `:method POST`.
    let post = [0x83, 0x86, 0x84];
    let padded = [&[255][..], &[0; 255]].concat();
    for (open, flags, payload) in [
        (frame(HEADERS, END_HEADERS, 1, &post), 0, &[][..]),
        // PADDED.
        (frame(HEADERS, END_HEADERS, 1, &post), 8, &padded),
        (frame(HEADERS, END_STREAM | END_HEADERS, 1, &GET), 0, &[0; 100]),
    ] {
        let sent = [greeting(&[]), open, frame(DATA, flags, 1, payload).repeat(200_000)].concat();
        let length = payload.len();
        assert!(attack(&server, sent).await.is_some(), "{length} bytes, flags {flags}");
    }
    is_well(&server, neighbour).await;
}

/// A name and a value are sent once, and meant fifteen thousand times in each head.
#[tokio::test]
async fn heads_that_unfold_are_bounded() {
    let server = Server::plain();
    let neighbour = neighbour(&server).await;
    // A literal that goes into the table: name "x", 3 900 bytes of value, whose length is 127 and the rest.
    let rest = 3_900 - 127;
    let length = [
        0x7f,
        0x80 | u8::try_from(rest & 0x7f).unwrap(),
        u8::try_from(rest >> 7).unwrap(),
    ];
    let entry = [&[0x40, 1, b'x'][..], &length, &[b'v'; 3_900]].concat();
    let mut sent = greeting(&[]);
    sent.extend(frame(
        HEADERS,
        END_STREAM | END_HEADERS,
        1,
        &[&GET[..], &entry].concat(),
    ));
    let unfolds = [&GET[..], &[0xbe; 15_000]].concat();
    for number in 1..300_u32 {
        sent.extend(frame(HEADERS, END_STREAM | END_HEADERS, number * 2 + 1, &unfolds));
    }
    assert!(attack(&server, sent).await.is_some());
    is_well(&server, neighbour).await;
}

/// A path that is longer than what is read of one ends its stream, and no other one.
#[tokio::test]
async fn a_path_that_is_too_long_ends_its_stream_alone() {
    let server = Server::plain();
    let neighbour = neighbour(&server).await;
    let mut stream = server.tcp().await;
    let size = 70_000;
    // A literal `:path`, whose length is 127 and the rest in seven bits at a time.
    let rest: usize = size - 127;
    let bytes = [rest & 0x7f | 0x80, rest >> 7 & 0x7f | 0x80, rest >> 14].map(|byte| u8::try_from(byte).unwrap());
    let mut block = [&[0x82, 0x86, 0x04, 0x7f][..], &bytes].concat();
    block.push(b'/');
    block.resize(block.len() + size - 1, b'v');
    let pieces: Vec<&[u8]> = block.chunks(16_384).collect();
    let mut sent = greeting(&[]);
    for (n, piece) in pieces.iter().enumerate() {
        let (kind, flags) = if n == 0 {
            (HEADERS, END_STREAM)
        } else {
            (CONTINUATION, 0)
        };
        let last = if n + 1 == pieces.len() { END_HEADERS } else { 0 };
        sent.extend(frame(kind, flags | last, 1, piece));
    }
    sent.extend(frame(HEADERS, END_STREAM | END_HEADERS, 3, &get("/fixed")));
    soon(stream.write_all(&sent)).await.unwrap();
    let came = read_until_quiet(&mut stream).await;
    let count = |kind| came.iter().filter(|one| **one == kind).count();
    assert_eq!(
        (count(RST_STREAM), count(HEADERS), count(GOAWAY)),
        (1, 1, 0),
        "{came:?}"
    );
    is_well(&server, neighbour).await;
}

/// A client that asks for much and takes nothing: what waits for it is bounded.
#[tokio::test]
async fn a_closed_window_holds_a_bounded_part_of_an_answer() {
    let server = Server::with(false, limits(|limits| limits.http2_max_send_buffer = 64 << 10));
    // SETTINGS_INITIAL_WINDOW_SIZE 0.
    let mut stream = server.tcp().await;
    stream.write_all(&greeting(&[0, 4, 0, 0, 0, 0])).await.unwrap();
    for number in 0..50_u32 {
        let request = frame(HEADERS, END_STREAM | END_HEADERS, number * 2 + 1, &get("/endless"));
        stream.write_all(&request).await.unwrap();
    }
    let neighbour = neighbour(&server).await;
    is_well(&server, neighbour).await;
    let heads = read_until_quiet(&mut stream).await;
    assert_eq!(heads.iter().filter(|kind| **kind == HEADERS).count(), 50);
    assert!(!heads.contains(&DATA));
    // Each answer was asked for its first pieces, and then for no more.
    let pieces = server.seen.pieces.load(Ordering::SeqCst);
    assert!(pieces <= 50 * 2, "{pieces} pieces of 64 KiB");
    drop(stream);
    until(|| server.seen.dropped.load(Ordering::SeqCst) >= 50).await;
}

/// Kinds of the frames that come until nothing more does.
async fn read_until_quiet(stream: &mut TcpStream) -> Vec<u8> {
    let mut came = Vec::new();
    let quiet = std::time::Duration::from_millis(300);
    while let Ok(Ok(count)) = tokio::time::timeout(quiet, stream.read_buf(&mut came)).await {
        assert!(count > 0, "the server closed");
    }
    frames(&came).into_iter().map(|(kind, _)| kind).collect()
}

#[tokio::test]
async fn a_flood_of_connections_leaves_the_open_ones() {
    let server = Server::with(false, limits(|limits| limits.max_connections = 20));
    let neighbour = neighbour(&server).await;
    let mut idle = Vec::new();
    for _ in 0..19 {
        idle.push(server.tcp().await);
    }
    until(|| server.serving.connections() == 20).await;
    // Those beyond wait without harm.
    for _ in 0..50 {
        idle.push(server.tcp().await);
    }
    let (mut client, _watch) = neighbour;
    assert_eq!(text(client.get("/fixed").await.unwrap()).await.len(), 1024);
    assert_eq!(server.serving.connections(), 20);
}
