//! Continue tokens: where the next page of a list begins.

use base64::engine::general_purpose::{self, GeneralPurpose};
use base64::{Engine, alphabet};
use keelson_machinery::json;
use keelson_machinery::status::StatusError;
use keelson_storage::{Revision, Timeline};

const VERSION: &str = "meta.k8s.io/v1";
/// The bits that the last character has too many are of no account.
const ENCODING: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    general_purpose::NO_PAD.with_decode_allow_trailing_bits(true),
);

/// Base64 of `{"v","rv","start"}`, as kube-apiserver's; clients may not look inside, but a client that moves between
/// two servers must be understood by both. `left` and `line` are ours: a server that does not know them counts, and
/// takes the revision for one of its own timeline.
#[derive(PartialEq, Debug)]
pub(super) struct Token {
    /// What the list shows; `None`: the newest.
    pub revision: Option<Revision>,
    /// The first key of the page, below the prefix; without a slash in front.
    pub start: String,
    /// How many keys there are from `start` on.
    pub left: Option<usize>,
    /// What the revision is of, if the server that gave the token could say.
    pub timeline: Option<Timeline>,
}

impl Token {
    pub fn write(&self) -> String {
        let revision = self.revision.map_or(-1, |r| i64::try_from(r.0).unwrap_or(-1));
        let start = format!("/{}", self.start);
        let mut json = serde_json::json!({ "v": VERSION, "rv": revision, "start": start });
        if let Some(left) = self.left {
            json["left"] = left.into();
        }
        if let Some(Timeline { store, turn }) = self.timeline {
            json["line"] = format!("{store:x}-{turn:x}").into();
        }
        ENCODING.encode(json.to_string())
    }

    /// Reads what a client sends; 400 for what no server has given it.
    pub fn read(token: &str) -> Result<Token, StatusError> {
        let invalid =
            |why: &str| StatusError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
        let bytes = ENCODING
            .decode(token)
            .map_err(|_| invalid(&format!("illegal base64 data at input byte {}", first_illegal(token))))?;
        json::validate(&bytes).map_err(|e| invalid(&e.to_string()))?;
        let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| invalid(&e.to_string()))?;
        let version = json["v"].as_str().unwrap_or_default();
        if version != VERSION {
            return Err(invalid(&format!(
                "server does not recognize this encoded version {version}"
            )));
        }
        let revision = json["rv"].as_i64().unwrap_or(0);
        if revision == 0 {
            return Err(invalid(
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ));
        }
        let start = json["start"].as_str().unwrap_or_default();
        if start.is_empty() {
            return Err(invalid("encoded start key empty (version meta.k8s.io/v1)"));
        }
        // A key that leads elsewhere than below the prefix is nobody's.
        let below = start.strip_prefix('/').unwrap_or(start);
        if below.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(invalid(start));
        }
        Ok(Token {
            revision: u64::try_from(revision).ok().map(Revision),
            start: below.to_owned(),
            left: json["left"].as_u64().and_then(|left| usize::try_from(left).ok()),
            timeline: json["line"].as_str().and_then(timeline),
        })
    }
}

fn timeline(text: &str) -> Option<Timeline> {
    let (store, turn) = text.split_once('-')?;
    Some(Timeline {
        store: u64::from_str_radix(store, 16).ok()?,
        turn: u64::from_str_radix(turn, 16).ok()?,
    })
}

/// Where Go's decoder stops in a token that is no base64.
fn first_illegal(token: &str) -> usize {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let position = token.bytes().position(|b| !legal(b));
    position.unwrap_or_else(|| token.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        let line = |store, turn| Some(Timeline { store, turn });
        for (revision, left, timeline) in [
            (Some(Revision(7)), Some(3), line(u64::MAX, 1)),
            (Some(Revision(1)), None, line(0, 0)),
            (None, None, None),
        ] {
            let token = Token {
                revision,
                start: "ns/a\0".to_owned(),
                left,
                timeline,
            };
            assert_eq!(Token::read(&token.write()).unwrap(), token);
        }
    }

    /// As those of kube-apiserver, and of whoever made one up.
    #[test]
    fn tokens_without_a_timeline_are_understood() {
        for line in ["", r#","line":7"#, r#","line":"x-1""#, r#","line":"1""#] {
            let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":5,"start":"a"{line}}}"#);
            let token = Token::read(&ENCODING.encode(json)).unwrap();
            assert_eq!((token.revision, token.timeline), (Some(Revision(5)), None));
        }
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for bad in [
            "",
            "!",
            "e30",
            &ENCODING.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}"#),
            &ENCODING.encode(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"/x//y"}"#),
        ] {
            assert_eq!(Token::read(bad).unwrap_err().code, 400, "{bad}");
        }
    }

    #[test]
    fn tokens_that_are_no_base64_say_where() {
        for (bad, at) in [("x", 0), ("abcde", 4), ("e30=", 3), ("!!!!", 0)] {
            let error = Token::read(bad).unwrap_err();
            let end = format!("illegal base64 data at input byte {at}");
            assert!(error.message.ends_with(&end), "{bad}: {error}");
        }
    }
}
