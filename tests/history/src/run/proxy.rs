//! A TCP proxy that can be told to misbehave.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Bytes passed on at a time.
const CHUNK: usize = 16 << 10;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mode {
    Pass,
    /// Connections are closed, new ones too.
    Refuse,
    /// Nothing gets through, and nobody is told.
    Hole,
    /// Every chunk is late.
    Delay(Duration),
}

pub struct Proxy {
    pub port: u16,
    mode: watch::Sender<Mode>,
}

impl Proxy {
    /// Passes connections on to a port of this machine.
    pub async fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mode, modes) = watch::channel(Mode::Pass);
        tokio::spawn(async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, to, modes.clone()));
                }
            }
        });
        Proxy { port, mode }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

async fn serve(stream: TcpStream, to: u16, mut modes: watch::Receiver<Mode>) {
    let _ = modes.wait_for(|mode| *mode != Mode::Hole).await;
    if *modes.borrow() == Mode::Refuse {
        return;
    }
    let Ok(other) = TcpStream::connect(("127.0.0.1", to)).await else {
        return;
    };
    let ((from_here, to_here), (from_there, to_there)) = (stream.into_split(), other.into_split());
    let mut refused = modes.clone();
    tokio::select! {
        () = pass(from_here, to_there, modes.clone()) => {}
        () = pass(from_there, to_here, modes) => {}
        _ = refused.wait_for(|mode| *mode == Mode::Refuse) => {}
    }
}

/// Ends when one side does.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut modes: watch::Receiver<Mode>) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let Ok(count @ 1..) = from.read(&mut chunk).await else {
            return;
        };
        let mode = modes.wait_for(|mode| *mode != Mode::Hole).await.map(|mode| *mode);
        if let Ok(Mode::Delay(time)) = mode {
            tokio::time::sleep(time).await;
        }
        if to.write_all(&chunk[..count]).await.is_err() {
            return;
        }
    }
}
