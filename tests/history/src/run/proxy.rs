//! A TCP proxy before etcd that can be told to misbehave.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::frames::{Cutter, Frame, Streams};

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
    /// The streams of the connections that there were.
    streams: Arc<Mutex<Vec<Arc<Mutex<Streams>>>>>,
}

impl Proxy {
    /// Passes connections on to a port of this machine.
    pub async fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mode, modes) = watch::channel(Mode::Pass);
        let streams: Arc<Mutex<Vec<_>>> = Arc::default();
        let all = streams.clone();
        tokio::spawn(async move {
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    let streams = Arc::default();
                    all.lock().unwrap().push(Arc::clone(&streams));
                    tokio::spawn(serve(stream, to, modes.clone(), streams));
                }
            }
        });
        Proxy { port, mode, streams }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// Streams that are open for a while say nothing any more, though their connections live and requests get through.
    pub fn mute(&self) {
        for streams in self.streams.lock().unwrap().iter() {
            streams.lock().unwrap().mute();
        }
    }
}

async fn serve(stream: TcpStream, to: u16, mut modes: watch::Receiver<Mode>, streams: Arc<Mutex<Streams>>) {
    let _ = modes.wait_for(|mode| *mode != Mode::Hole).await;
    if *modes.borrow() == Mode::Refuse {
        return;
    }
    let Ok(other) = TcpStream::connect(("127.0.0.1", to)).await else {
        return;
    };
    let ((from_here, to_here), (from_there, to_there)) = (stream.into_split(), other.into_split());
    let mut refused = modes.clone();
    // What the one direction has to tell in the other.
    let (tell, told) = mpsc::unbounded_channel();
    let asked = |frame: &Frame| {
        streams.lock().unwrap().asked(frame);
        true
    };
    let answered = |frame: &Frame| {
        let mut out = Vec::new();
        let passes = streams.lock().unwrap().answered(frame, &mut out);
        // Nobody listens when the connection ends.
        let _ = tell.send(out);
        passes
    };
    // The other direction has nothing to be told, by a sender that stays.
    let (_silent, nothing) = mpsc::unbounded_channel();
    tokio::select! {
        () = pass(from_here, to_there, modes.clone(), asked, told) => {}
        () = pass(from_there, to_here, modes, answered, nothing) => {}
        _ = refused.wait_for(|mode| *mode == Mode::Refuse) => {}
    }
}

/// Passes on what `passes` lets through, and what is told, between whole frames. Ends when one side does.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut modes: watch::Receiver<Mode>,
    passes: impl Fn(&Frame) -> bool,
    mut told: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    let (mut chunk, mut cutter) = (vec![0; CHUNK], Cutter::default());
    loop {
        let mut out = Vec::new();
        tokio::select! {
            read = from.read(&mut chunk) => {
                let Ok(count @ 1..) = read else { return };
                cutter.put(&chunk[..count]);
                while let Some(frame) = cutter.next() {
                    if passes(&frame) {
                        out.extend(frame.0);
                    }
                }
            }
            Some(more) = told.recv() => out.extend(more),
        }
        if out.is_empty() {
            continue;
        }
        let mode = modes.wait_for(|mode| *mode != Mode::Hole).await.map(|mode| *mode);
        if let Ok(Mode::Delay(time)) = mode {
            tokio::time::sleep(time).await;
        }
        if to.write_all(&out).await.is_err() {
            return;
        }
    }
}
