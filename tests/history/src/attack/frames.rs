//! HTTP/2 frames and heads as no client's library sends them.

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// SETTINGS_INITIAL_WINDOW_SIZE 0: nothing may be sent to this client until it says so.
pub const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];
pub const CANCEL: [u8; 4] = [0, 0, 0, 8];

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// What every client sends first.
pub fn greeting(settings: &[u8]) -> Vec<u8> {
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, settings),
    ]
    .concat()
}

/// The number of the `n`th stream that a client opens.
pub fn stream(n: u32) -> u32 {
    n % 0x3fff_ffff * 2 + 1
}

fn text(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = match text.len() {
        short @ ..127 => {
            out.push(u8::try_from(short).unwrap());
            0
        }
        long => {
            out.push(127);
            long - 127
        }
    };
    if text.len() >= 127 {
        while rest >= 128 {
            out.push(u8::try_from(rest & 127).unwrap() | 128);
            rest >>= 7;
        }
        out.push(u8::try_from(rest).unwrap());
    }
    out.extend(text);
}

/// A header that is spelled out; `kept`: the server is to remember it in its table.
pub fn header(name: &str, value: &str, kept: bool) -> Vec<u8> {
    let mut out = vec![if kept { 0x40 } else { 0 }];
    text(name.as_bytes(), &mut out);
    text(value.as_bytes(), &mut out);
    out
}

/// The head of a request by `user`.
pub fn head(method: &str, path: &str, user: &str) -> Vec<u8> {
    [
        header(":method", method, false),
        header(":scheme", "https", false),
        header(":authority", "127.0.0.1", false),
        header(":path", path, false),
        header("impersonate-user", user, false),
    ]
    .concat()
}

/// A request without a body.
pub fn request(n: u32, path: &str, user: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream(n), &head("GET", path, user))
}
