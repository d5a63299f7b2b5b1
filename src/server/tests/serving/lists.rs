//! Costs of lists while they are sent.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::setting::{ORDERS, Server, soon};

const ORDER_COUNT: usize = 400;
const NOTE: usize = 20_000;
const CLIENTS: usize = 100;
/// Memory that a list in flight may hold, in KiB.
const EACH: usize = 1 << 10;
/// What the cache of renditions and whatever else runs beside may take meanwhile, in KiB.
const BESIDE: usize = 100 << 10;

/// Resident memory of this process, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Many whole lists at once, to clients that stop reading at their beginning: no answer stands in memory as a whole.
#[tokio::test]
async fn lists_in_flight_hold_little_each() {
    // The last one is read when all the others have been.
    let server = Server::with(|requests| requests.timeout = Duration::from_secs(600));
    let mut writer = server.client().await;
    for number in 0..ORDER_COUNT {
        writer.create(&format!("order-{number}"), NOTE).await;
    }
    let before = resident();
    let mut stalled = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET {ORDERS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        soon(stream.read_exact(&mut first)).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        stalled.push(stream);
    }
    // What can be sent is sent by now, and a request after all of them is answered.
    assert_eq!(writer.get(&format!("{ORDERS}/order-0")).await.status(), 200);
    let grown = resident().saturating_sub(before);
    let whole = CLIENTS * ORDER_COUNT * NOTE / 1024;
    assert!(
        grown < CLIENTS * EACH + BESIDE,
        "{grown} KiB for lists of {whole} KiB in all"
    );
    for mut stream in stalled {
        let mut rest = Vec::new();
        soon(stream.read_to_end(&mut rest)).await.unwrap();
        let items = rest.windows(9).filter(|part| part == b"\"name\":\"o").count();
        assert_eq!(items, ORDER_COUNT);
    }
}
