//! Acting as somebody else.
//!
//! There are two kinds of permission. The constrained one is given for a *mode*, which says what the wanted identity is
//! made of, and needs both the right to be that identity (`impersonate:<mode>` on the user, its groups and so on, in
//! the group authentication.k8s.io) and the right to do the very request as somebody else
//! (`impersonate-on:<mode>:<verb>`). The older one, the verb `impersonate`, is for the identity alone. Constrained
//! modes are asked first; but whoever last came through by the older one is asked for that first, and gets its
//! refusals.

mod headers;
mod mode;

use std::collections::VecDeque;
use std::sync::Mutex;

use keelson_machinery::status::StatusError;

use crate::authz::{Authorization, refused};
use crate::request_info::RequestInfo;
use crate::user::{GROUP_AUTHENTICATED, GROUP_NODES, GROUP_UNAUTHENTICATED, USER_ANONYMOUS, User};

pub use headers::{remove, wanted};
use mode::{Check, Mode, legacy, modes};

/// So many users are remembered who came through by the older permission.
const REMEMBERED: usize = 256;

/// Whom a request goes on as.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acting {
    pub user: User,
    /// The constrained permission that gave the identity; `None`: it was the older one.
    pub constraint: Option<&'static str>,
}

/// Decides who may act as whom.
#[derive(Default)]
pub struct Impersonation {
    /// Users who last came through by the older permission, the oldest first.
    legacy: Mutex<VecDeque<String>>,
}

impl Impersonation {
    /// The identity that the request goes on with. 403 if the user may not have it.
    pub async fn act_as(
        &self,
        authorization: &Authorization,
        user: &User,
        info: &RequestInfo,
        wanted: User,
    ) -> Result<Acting, StatusError> {
        let by_legacy = || check_all(authorization, user, legacy(&wanted));
        let remembered = self.remembers(&user.name);
        let mut refused = None;
        if remembered {
            match by_legacy().await {
                Ok(()) => return Ok(acting(wanted, None)),
                Err(error) => refused = Some(error),
            }
        }
        for mode in modes(user, &wanted) {
            match check_all(authorization, user, mode.checks(info, &wanted)).await {
                Ok(()) => {
                    self.remember(&user.name, false);
                    return Ok(acting(wanted, Some(mode)));
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        if !remembered {
            match by_legacy().await {
                Ok(()) => {
                    self.remember(&user.name, true);
                    return Ok(acting(wanted, None));
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or_else(|| StatusError::internal_error("nobody decided about an impersonation")))
    }

    fn remembers(&self, name: &str) -> bool {
        let names = self.legacy.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        names.iter().any(|n| n == name)
    }

    fn remember(&self, name: &str, legacy: bool) {
        let mut names = self.legacy.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        names.retain(|n| n != name);
        if legacy {
            names.push_back(name.to_owned());
        }
        if names.len() > REMEMBERED {
            names.pop_front();
        }
    }
}

async fn check_all(authorization: &Authorization, user: &User, checks: Vec<Check>) -> Result<(), StatusError> {
    let mut checks = checks.into_iter();
    while let Some(check) = checks.next() {
        let info = &check.info;
        let reason = match check.impossible {
            Some(why) => why,
            None => {
                let verdict = authorization.decide(user, info).await;
                if verdict.allowed {
                    checks.by_ref().take(check.stands_for).for_each(drop);
                    continue;
                }
                if check.stands_for > 0 {
                    continue;
                }
                match verdict.error {
                    Some(error) if verdict.reason.is_empty() => error,
                    Some(error) => format!("{error}: {}", verdict.reason),
                    None => verdict.reason,
                }
            }
        };
        return Err(refused(user, info, &reason));
    }
    Ok(())
}

fn acting(wanted: User, mode: Option<Mode>) -> Acting {
    Acting {
        user: complete(wanted, mode),
        constraint: mode.map(Mode::verb),
    }
}

/// Adds the groups that the identity has by its name.
fn complete(mut user: User, mode: Option<Mode>) -> User {
    if user.groups.is_empty() {
        if let Some((namespace, _)) = mode::service_account(&user.name) {
            user.groups = vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ];
        } else if mode.is_some_and(Mode::is_node) {
            user.groups = vec![GROUP_NODES.to_owned()];
        }
    }
    if user.name == USER_ANONYMOUS {
        if !user.in_group(GROUP_UNAUTHENTICATED) {
            user.groups.push(GROUP_UNAUTHENTICATED.to_owned());
        }
    } else if !user.in_group(GROUP_AUTHENTICATED) && !user.in_group(GROUP_UNAUTHENTICATED) {
        user.groups.push(GROUP_AUTHENTICATED.to_owned());
    }
    user
}

#[cfg(test)]
mod tests;
