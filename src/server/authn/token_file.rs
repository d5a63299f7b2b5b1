//! Static tokens.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::bearer::{self, Bearer};
use super::{Authenticator, Credentials, INVALID_TOKEN, with_group};
use crate::user::User;

/// Tokens by their digest: the tokens themselves are not kept, and looking one up tells nothing of the others by its
/// timing.
pub struct StaticTokens {
    users: HashMap<[u8; 32], Arc<User>>,
}

impl StaticTokens {
    pub fn new(tokens: impl IntoIterator<Item = (String, User)>) -> StaticTokens {
        StaticTokens {
            users: tokens
                .into_iter()
                .map(|(token, user)| (digest(&token), with_group(Arc::new(user))))
                .collect(),
        }
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Authenticator for StaticTokens {
    fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<Arc<User>>, String> {
        match bearer::token(credentials.headers) {
            Bearer::Token(token) => match self.users.get(&digest(token)) {
                Some(user) => Ok(Some(Arc::clone(user))),
                None => Err(INVALID_TOKEN.into()),
            },
            Bearer::None | Bearer::ExtraSpace => Ok(None),
        }
    }
}

/// Refuses every token: what remains when no authenticator of tokens is configured is that no token is right.
pub struct NoTokens;

impl Authenticator for NoTokens {
    fn authenticate(&self, credentials: &Credentials<'_>) -> Result<Option<Arc<User>>, String> {
        match bearer::token(credentials.headers) {
            Bearer::Token(_) => Err(INVALID_TOKEN.into()),
            Bearer::None | Bearer::ExtraSpace => Ok(None),
        }
    }
}
