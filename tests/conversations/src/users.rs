//! The users that cases speak as, and the flags of the server that the recordings were made with.

use std::collections::BTreeMap;
use std::path::Path;

pub const ADMIN_TOKEN: &str = "admintoken";

/// The server's file of static tokens.
pub const TOKEN_FILE: &str = "admintoken,admin,uid-admin,\"system:masters\"\n\
                              alicetoken,alice,uid-alice,\"devs\"\n\
                              bobtoken,bob,uid-bob\n";

/// User to token.
pub fn tokens() -> BTreeMap<String, String> {
    let users = [("admin", ADMIN_TOKEN), ("alice", "alicetoken"), ("bob", "bobtoken")];
    users.map(|(user, token)| (user.to_owned(), token.to_owned())).into()
}

/// The flags of every server that cases were recorded with.
pub fn recorded_with(token_file: &Path) -> Vec<String> {
    vec![
        format!("--token-auth-file={}", token_file.display()),
        "--authorization-mode=Node,RBAC".into(),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        "--allow-privileged=true".into(),
    ]
}
