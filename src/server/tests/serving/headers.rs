//! Headers that claim to be somebody: they count from whom they may count, and nowhere else.

use std::sync::{Arc, Mutex};

use keelson_access::authn::token_file::StaticTokens;
use keelson_access::authn::tokens::Tokens;
use keelson_access::authz::{Answer, Authorization, Authorizer, Decision, Rules};
use keelson_access::request_info::RequestInfo;
use keelson_access::user::User;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::setting::{ORDERS, Server, soon};

/// What an authorizer was asked, as `user[groups] verb resource name`.
#[derive(Clone, Default)]
pub struct Questions(Arc<Mutex<Vec<String>>>);

impl Questions {
    pub fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Authorizer for Questions {
    /// Everything but to act as `admin`, as a member of a group of the system, with a uid, or with an extra.
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        let groups = user.groups.join(" ");
        let RequestInfo {
            verb, resource, name, ..
        } = info;
        let acts = verb.starts_with("impersonate");
        let refused = acts && (resource != "users" || name == "admin") && (resource != "groups" || name.contains(':'));
        // Of the two kinds of this permission the older one is told.
        if !verb.starts_with("impersonate:") && !verb.starts_with("impersonate-on:") {
            let text = format!("{}[{groups}] {verb} {resource} {name}", user.name);
            self.0.lock().unwrap().push(text.trim_end().to_owned());
        }
        match refused || verb.contains(':') {
            true => Decision::NoOpinion(String::new()).into(),
            false => Decision::Allow(String::new()).into(),
        }
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules::default()
    }
}

/// A server that knows the token of `ann`.
fn server() -> (Server, Questions) {
    let questions = Questions::default();
    let asked = questions.clone();
    let server = Server::configured(move |config| {
        let ann = User {
            name: "ann".to_owned(),
            groups: vec!["staff".to_owned()],
            ..User::default()
        };
        let tokens = StaticTokens::new([("secret".to_owned(), ann)]);
        config.access.authentication.chain = vec![Tokens::new(vec![Arc::new(tokens)], None)];
        config.access.authorization = Authorization::new(vec![Arc::new(asked)]);
    });
    (server, questions)
}

/// The status of a list asked for with these lines in the head.
async fn list(server: &Server, lines: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let mut request = format!("GET {ORDERS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n").into_bytes();
    request.extend(lines);
    request.extend(b"\r\n");
    stream.write_all(&request).await.unwrap();
    let mut answer = Vec::new();
    let _ = soon(stream.read_to_end(&mut answer)).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// Reliability, header trust: identity headers of a proxy, from one who is none, under any spelling.
#[tokio::test]
async fn identity_headers_of_a_proxy_count_from_no_one_else() {
    let (server, questions) = server();
    let ann = "ann[staff system:authenticated] list orders";
    let nobody = "system:anonymous[system:unauthenticated] list orders";
    for claim in [
        "X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\n",
        "x-rEMOTE-uSER: admin\r\n",
        "X_Remote_User: admin\r\nX-Remote_Group: system:masters\r\n",
        "X-Remote-User: admin\r\nConnection: X-Remote-User\r\n",
        "X-Remote-Extra-Scopes: all\r\nX-Remote-Uid: 0\r\n",
        "X-Remote-User: ann\r\nX-Remote-User: admin\r\n",
        "X-Forwarded-User: admin\r\nX-Auth-Request-User: admin\r\nRemote-User: admin\r\n",
        "X-Forwarded-For: 127.0.0.1\r\nX-Real-Ip: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n",
        "X-Original-Url: /healthz\r\nX-Rewrite-Url: /healthz\r\nX-Http-Method-Override: DELETE\r\n",
    ] {
        assert_eq!(list(&server, claim.as_bytes()).await, "200", "{claim}");
        assert_eq!(questions.taken(), [nobody], "{claim}");
        let with_token = format!("Authorization: Bearer secret\r\n{claim}");
        assert_eq!(list(&server, with_token.as_bytes()).await, "200", "{claim}");
        assert_eq!(questions.taken(), [ann], "{claim}");
    }
}

/// Reliability, header trust: each part of a wanted identity is asked about, none is dropped in silence.
#[tokio::test]
async fn every_part_of_a_wanted_identity_is_asked_about() {
    let (server, questions) = server();
    let impersonate = |what: &str| format!("ann[staff system:authenticated] impersonate {what}");
    let bob = "bob[system:authenticated] list orders".to_owned();
    for (claim, status, asked) in [
        (
            "Impersonate-User: bob\r\n",
            "200",
            vec![impersonate("users bob"), bob.clone()],
        ),
        // The header is no less there for being called a matter of the connection.
        (
            "Impersonate-User: bob\r\nConnection: Impersonate-User\r\n",
            "200",
            vec![impersonate("users bob"), bob.clone()],
        ),
        (
            "Impersonate-User: bob\r\nImpersonate-User: admin\r\n",
            "200",
            vec![impersonate("users bob"), bob],
        ),
        ("iMPERSONATE-uSER: admin\r\n", "403", vec![impersonate("users admin")]),
        (
            "Impersonate-User: bob\r\nImpersonate-Group: staff\r\nImpersonate-Group: system:masters\r\n",
            "403",
            vec![
                impersonate("users bob"),
                impersonate("groups staff"),
                impersonate("groups system:masters"),
            ],
        ),
        (
            "Impersonate-User: bob\r\nImpersonate-Uid: 1\r\n",
            "403",
            vec![impersonate("users bob"), impersonate("uids 1")],
        ),
        (
            "Impersonate-User: bob\r\nImpersonate-Extra-a%2fb: c\r\n",
            "403",
            vec![impersonate("users bob"), impersonate("userextras c")],
        ),
        ("Impersonate-Group: staff\r\n", "400", vec![]),
        ("Impersonate-Uid: 1\r\n", "400", vec![]),
        ("Impersonate-Extra-a: c\r\n", "400", vec![]),
        ("Impersonate-User: \r\nImpersonate-Group: staff\r\n", "400", vec![]),
        // No such header: an underscore is no hyphen here, and must not be one further on.
        (
            "Impersonate_User: admin\r\n",
            "200",
            vec!["ann[staff system:authenticated] list orders".to_owned()],
        ),
    ] {
        let lines = format!("Authorization: Bearer secret\r\n{claim}");
        assert_eq!(list(&server, lines.as_bytes()).await, status, "{claim}");
        assert_eq!(questions.taken(), asked, "{claim}");
    }
}

/// Reliability, header trust: lines that end where they should not are no requests at all.
#[tokio::test]
async fn control_characters_in_identities_are_refused() {
    let (server, questions) = server();
    for line in [
        &b"Impersonate-User: bob\rImpersonate-Group: a\r\n"[..],
        b"Impersonate-User: bob\0\r\n",
        b"Impersonate-User : bob\r\n",
        b"Impersonate-User\x0b: bob\r\n",
        b"Impersonate-User: bob\x01\r\n",
        b"Impersonate\0-User: bob\r\n",
        b"X-Remote-User: a\r\n b: c\r\n",
    ] {
        let lines = [b"Authorization: Bearer secret\r\n".as_slice(), line].concat();
        assert_eq!(list(&server, &lines).await, "400", "{}", String::from_utf8_lossy(line));
        assert!(questions.taken().is_empty());
    }
}

/// Reliability, loopback identity: where the server asks for something it asks itself, and has no token that others
/// could show.
#[tokio::test]
async fn nobody_can_show_the_identity_of_the_server_itself() {
    let (server, questions) = server();
    for token in [
        "system:apiserver",
        "loopback",
        "00000000-0000-0000-0000-000000000000",
        "null",
        "e30.e30.",
    ] {
        let lines = format!("Authorization: Bearer {token}\r\n");
        assert_eq!(list(&server, lines.as_bytes()).await, "401", "{token}");
    }
    assert!(questions.taken().is_empty());
}
