//! Authorizers that always say the same.

use super::{Answer, Authorizer, Decision, Rules};
use crate::request_info::RequestInfo;
use crate::user::{GROUP_MASTERS, User};

/// Everybody may do everything.
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize<'a>(&'a self, _user: &'a User, _info: &'a RequestInfo) -> Answer<'a> {
        Decision::Allow(String::new()).into()
    }

    fn rules(&self, _user: &User, _namespace: &str) -> Rules {
        Rules::everything()
    }
}

/// Nobody may do anything (but the groups that are asked about first).
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize<'a>(&'a self, _user: &'a User, _info: &'a RequestInfo) -> Answer<'a> {
        Decision::NoOpinion("Everything is forbidden.".into()).into()
    }

    fn rules(&self, _user: &User, _namespace: &str) -> Rules {
        Rules::default()
    }
}

/// Members of `system:masters` may do everything.
pub struct PrivilegedGroup;

impl Authorizer for PrivilegedGroup {
    fn authorize<'a>(&'a self, user: &'a User, _info: &'a RequestInfo) -> Answer<'a> {
        let decision = match user.in_group(GROUP_MASTERS) {
            true => Decision::Allow(String::new()),
            false => Decision::NoOpinion(String::new()),
        };
        decision.into()
    }

    /// None: what the group may do is no rule of anybody's, as in kube-apiserver.
    fn rules(&self, _user: &User, _namespace: &str) -> Rules {
        Rules::default()
    }
}
