//! User info: name, uid, groups and extra of who sent a request.

use std::collections::BTreeMap;

pub const GROUP_AUTHENTICATED: &str = "system:authenticated";
pub const GROUP_UNAUTHENTICATED: &str = "system:unauthenticated";
pub const GROUP_MASTERS: &str = "system:masters";
pub const GROUP_NODES: &str = "system:nodes";
/// What the names of nodes begin with, as users.
pub const NODE_PREFIX: &str = "system:node:";
/// What the names of service accounts begin with, as users; namespace and name follow, with a colon between.
pub const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// The extra that tells the credentials of a user from others of the same user.
pub const EXTRA_CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
pub const USER_ANONYMOUS: &str = "system:anonymous";

/// An authenticated (or anonymous) identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The identity in the words of kube-apiserver's refusals: name, uid, groups and extra values.
    pub fn described(&self) -> String {
        let extra = self
            .extra
            .iter()
            .map(|(key, values)| format!("{key}:[{}]", values.join(" ")));
        let extra: Vec<String> = extra.collect();
        format!(
            "&{{{} {} [{}] map[{}]}}",
            self.name,
            self.uid,
            self.groups.join(" "),
            extra.join(" ")
        )
    }

    /// The identity of requests without credentials.
    pub fn anonymous() -> User {
        User {
            name: USER_ANONYMOUS.into(),
            groups: vec![GROUP_UNAUTHENTICATED.into()],
            ..User::default()
        }
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}
