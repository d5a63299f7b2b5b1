//! The identity that the headers `Impersonate-…` ask for.

use actix_web::http::header::{HeaderMap, HeaderName};
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;

use crate::request_info::decode_path;
use crate::user::User;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const EXTRA: &str = "impersonate-extra-";
const ANY: &str = "impersonate-";

/// The wanted identity as the headers say it; `None` without such headers. Naming groups, a uid or extras of nobody is
/// 400.
pub fn wanted(headers: &HeaderMap) -> Result<Option<User>, StatusError> {
    let first = |name| {
        headers
            .get(name)
            .map(|value| text(value.as_bytes()))
            .unwrap_or_default()
    };
    let mut user = User {
        name: first(USER),
        uid: first(UID),
        groups: headers.get_all(GROUP).map(|value| text(value.as_bytes())).collect(),
        ..User::default()
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            // A key that is not escaped rightly is taken as it stands.
            let key = decode_path(key).unwrap_or_else(|| key.to_owned());
            user.extra.entry(key).or_default().push(text(value.as_bytes()));
        }
    }
    match (user.name.is_empty(), user == User::default()) {
        (false, _) => Ok(Some(user)),
        (true, true) => Ok(None),
        (true, false) => Err(StatusError::bad_request(format!(
            "requested {} without impersonating a user name",
            shown(&user)
        ))),
    }
}

/// Takes the headers away: what was asked for is decided, and nobody further on may read it again.
pub fn remove(headers: &mut HeaderMap) {
    let names: Vec<HeaderName> = headers
        .keys()
        .filter(|n| n.as_str().starts_with(ANY))
        .cloned()
        .collect();
    for name in names {
        headers.remove(name);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The identity as the message of kube-apiserver shows it: in Go's syntax.
fn shown(user: &User) -> String {
    let list = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => list(groups),
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs = user
            .extra
            .iter()
            .map(|(key, values)| format!("{}:{}", quote(key), list(values)));
        format!("map[string][]string{{{}}}", pairs.collect::<Vec<_>>().join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
        quote(&user.name),
        quote(&user.uid)
    )
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn headers_name_an_identity() {
        let headers = headers(&[
            ("impersonate-user", "bob"),
            ("impersonate-user", "carol"),
            ("impersonate-uid", "u1"),
            ("impersonate-group", "g1"),
            ("impersonate-group", "g2"),
            ("impersonate-extra-sco%2fpes", "a"),
            ("impersonate-extra-sco%2fpes", "b"),
            ("impersonate-extra-%zz", "c"),
        ]);
        let user = wanted(&headers).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("bob", "u1"));
        assert_eq!(user.groups, ["g1", "g2"]);
        assert_eq!(user.extra["sco/pes"], ["a", "b"]);
        assert_eq!(user.extra["%zz"], ["c"]);
    }

    #[test]
    fn what_belongs_to_nobody_is_refused() {
        assert_eq!(
            wanted(&headers(&[("accept", "*/*"), ("impersonate-user", "")])),
            Ok(None)
        );
        for (name, shown) in [
            (
                "impersonate-group",
                r#"Name:"", UID:"", Groups:[]string{"x"}, Extra:map[string][]string(nil)"#,
            ),
            (
                "impersonate-uid",
                r#"Name:"", UID:"x", Groups:[]string(nil), Extra:map[string][]string(nil)"#,
            ),
            (
                "impersonate-extra-foo",
                r#"Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"foo":[]string{"x"}}"#,
            ),
        ] {
            let error = wanted(&headers(&[(name, "x")])).unwrap_err();
            let text = format!("requested &user.DefaultInfo{{{shown}}} without impersonating a user name");
            assert_eq!((error.code, error.message), (400, text));
        }
    }

    #[test]
    fn the_headers_do_not_pass_on() {
        let mut headers = headers(&[
            ("accept", "*/*"),
            ("impersonate-user", "bob"),
            ("impersonate-extra-x", "a"),
            ("impersonate-extra-x", "b"),
        ]);
        remove(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
