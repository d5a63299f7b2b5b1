//! Names and passwords out of a file, as old clusters had them. Off unless a file is given.

use std::collections::HashMap;
use std::sync::Arc;

use actix_web::http::header::{self, HeaderMap};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest, Sha256};

use super::secret::is_same;
use super::{Answer, Authenticator, Credentials, Identity};
use crate::user::User;

const WRONG: &str = "invalid username/password combination";

/// Users by name, with the digests of their passwords.
pub struct Passwords {
    users: HashMap<String, ([u8; 32], Arc<Identity>)>,
}

impl Passwords {
    /// From passwords and users; of a name that is given twice the last one counts.
    pub fn new(users: impl IntoIterator<Item = (String, User)>) -> Passwords {
        let known = |(password, user): (String, User)| {
            let name = user.name.clone();
            (name, (digest(&password), Identity::of(user).with_group()))
        };
        Passwords {
            users: users.into_iter().map(known).collect(),
        }
    }

    fn judge(&self, name: &str, password: &str) -> Result<Arc<Identity>, &'static str> {
        let given = digest(password);
        // A name that nobody has takes as long.
        let (known, identity) = match self.users.get(name) {
            Some((known, identity)) => (*known, Some(identity)),
            None => (digest(""), None),
        };
        let fits = is_same(&known, &given);
        identity.filter(|_| fits).cloned().ok_or(WRONG)
    }
}

fn digest(password: &str) -> [u8; 32] {
    Sha256::digest(password.as_bytes()).into()
}

/// Name and password of `Authorization: Basic …`; `None`: there is no such header.
fn given(headers: &HeaderMap) -> Option<(String, String)> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = text.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = decoded.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

impl Authenticator for Passwords {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> Answer<'a> {
        match given(credentials.headers) {
            None => Answer::nothing(),
            Some((name, password)) => match self.judge(&name, &password) {
                Ok(identity) => Answer::Now(Ok(Some(identity))),
                Err(error) => Answer::Now(Err(error.into())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn names_and_passwords_belong_together() {
        let user = |name: &str| User {
            name: name.to_owned(),
            ..User::default()
        };
        let passwords = Passwords::new([
            ("secret".to_owned(), user("ann")),
            ("secret".to_owned(), user("bob")),
            (String::new(), user("carol")),
        ]);
        for (text, want) in [
            ("ann:secret", Ok(Some("ann"))),
            ("bob:secret", Ok(Some("bob"))),
            ("ann:secrets", Err(WRONG)),
            ("ann:", Err(WRONG)),
            ("nobody:", Err(WRONG)),
            ("carol:", Ok(Some("carol"))),
            ("ann", Ok(None)),
        ] {
            let mut headers = HeaderMap::new();
            let value = format!("bAsic {}", BASE64.encode(text));
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&value).unwrap());
            let credentials = Credentials {
                headers: &headers,
                connection: None,
                path: "/",
                audiences: &[],
            };
            let Answer::Now(outcome) = passwords.authenticate(&credentials) else {
                panic!("nobody has to be asked");
            };
            let got = outcome.map(|found| found.map(|identity| identity.user.name.clone()));
            let want = want.map(|name| name.map(str::to_owned)).map_err(Into::into);
            assert_eq!(got, want, "{text}");
        }
        assert!(given(&HeaderMap::new()).is_none());
    }
}
