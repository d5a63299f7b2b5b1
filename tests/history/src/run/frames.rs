//! HTTP/2 frames on their way through a proxy, and which streams stay open: those that watch, as requests are over
//! soon.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// What a client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD: usize = 9;
/// The type of frames that carry data.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const WINDOW_UPDATE: u8 = 8;
/// The flag of the last frame of a stream.
const END: u8 = 1;
/// A stream that was open for so long is none of a request.
const LASTING: Duration = Duration::from_millis(500);

/// One frame, head and all; or the preface.
pub struct Frame(pub Vec<u8>);

impl Frame {
    fn kind(&self) -> Option<u8> {
        self.0.get(3).copied().filter(|_| !self.is_preface())
    }

    fn is_preface(&self) -> bool {
        self.0 == PREFACE
    }

    fn stream(&self) -> u32 {
        let bytes = [5, 6, 7, 8].map(|at| self.0.get(at).copied().unwrap_or(0));
        u32::from_be_bytes(bytes) & 0x7fff_ffff
    }

    fn ends(&self) -> bool {
        matches!(self.kind(), Some(DATA | HEADERS)) && self.0.get(4).is_some_and(|flags| flags & END != 0)
    }
}

/// Gives a sender room for so many bytes: of a stream, or (0) of its connection.
fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 4, WINDOW_UPDATE, 0];
    frame.extend(stream.to_be_bytes());
    frame.extend(bytes.to_be_bytes());
    frame
}

/// Cuts what comes into frames.
#[derive(Default)]
pub struct Cutter {
    pending: Vec<u8>,
}

impl Cutter {
    pub fn put(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next frame that has come as a whole.
    pub fn next(&mut self) -> Option<Frame> {
        let length = match self.pending.starts_with(b"PRI") {
            true => PREFACE.len(),
            false => {
                let head = self.pending.get(..HEAD)?;
                HEAD + (usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]))
            }
        };
        (self.pending.len() >= length).then(|| Frame(self.pending.drain(..length).collect()))
    }
}

/// The streams of a connection.
#[derive(Default)]
pub struct Streams {
    open: HashMap<u32, Instant>,
    /// Of these nothing more gets through to the client.
    mute: HashSet<u32>,
}

impl Streams {
    /// A frame of the client goes by.
    pub fn asked(&mut self, frame: &Frame) {
        if frame.kind() == Some(HEADERS) {
            self.open.insert(frame.stream(), Instant::now());
        }
        self.note_reset(frame);
    }

    /// A frame for the client: false, it is to be dropped. What the other side must be told then is put out.
    pub fn answered(&mut self, frame: &Frame, out: &mut Vec<u8>) -> bool {
        let stream = frame.stream();
        if frame.kind() == Some(DATA) && self.mute.contains(&stream) {
            let bytes = (frame.0.len() - HEAD) as u32;
            if bytes > 0 {
                out.extend(window_update(0, bytes));
                out.extend(window_update(stream, bytes));
            }
            return false;
        }
        if frame.ends() {
            self.open.remove(&stream);
        }
        self.note_reset(frame);
        true
    }

    fn note_reset(&mut self, frame: &Frame) {
        if frame.kind() == Some(RESET) {
            self.open.remove(&frame.stream());
            self.mute.remove(&frame.stream());
        }
    }

    /// The streams that last say nothing any more, as long as they are open.
    pub fn mute(&mut self) {
        let lasting = self.open.iter().filter(|(_, since)| since.elapsed() > LASTING);
        self.mute.extend(lasting.map(|(stream, _)| *stream));
    }
}
