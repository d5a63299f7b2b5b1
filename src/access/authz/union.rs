//! All authorizers of a server as one.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::rbac::Rbac;
use super::{Answer, AuthorizationMetrics, Authorizer, Decision, Label, Rules, Verdict};
use crate::lister::Listers;
use crate::request_info::RequestInfo;
use crate::user::User;

type Chain = Vec<Arc<dyn Authorizer>>;

/// The authorizers in their order. Whoever none of them allows may not. A clone is the same union.
#[derive(Clone, Default)]
pub struct Authorization {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    chain: ArcSwap<Chain>,
    roles: Option<Arc<Rbac>>,
    /// Those that may join later, and therefore get the resources of the server with the others.
    spare: Chain,
    metrics: AuthorizationMetrics,
}

/// An authorizer with a name in metrics.
pub struct Labeled {
    label: Label,
    inner: Arc<dyn Authorizer>,
}

impl Labeled {
    /// `kind` is a type of the configuration, `RBAC`; the name is the same in lower case.
    pub fn new(kind: &'static str, inner: Arc<dyn Authorizer>) -> Labeled {
        let name = kind.to_lowercase();
        Labeled {
            label: Label { name, kind },
            inner,
        }
    }
}

impl Authorizer for Labeled {
    fn authorize<'a>(&'a self, user: &'a User, info: &'a RequestInfo) -> Answer<'a> {
        self.inner.authorize(user, info)
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        self.inner.rules(user, namespace)
    }

    fn label(&self) -> Option<&Label> {
        Some(&self.label)
    }

    fn attach(&self, listers: &dyn Listers) {
        self.inner.attach(listers);
    }
}

impl Authorization {
    pub fn new(chain: Chain) -> Authorization {
        Authorization::with_roles(chain, None)
    }

    /// A union with the roles that decide who may write roles, whether or not they are among the authorizers.
    pub fn with_roles(chain: Chain, roles: Option<Arc<Rbac>>) -> Authorization {
        Authorization::with_spare(chain, roles, Vec::new(), AuthorizationMetrics::default())
    }

    /// The same, with authorizers that [`Authorization::replace`] may bring in later, and the counters of all.
    pub fn with_spare(
        chain: Chain,
        roles: Option<Arc<Rbac>>,
        spare: Chain,
        metrics: AuthorizationMetrics,
    ) -> Authorization {
        let chain = ArcSwap::from_pointee(chain);
        Authorization {
            inner: Arc::new(Inner {
                chain,
                roles,
                spare,
                metrics,
            }),
        }
    }

    pub fn metrics(&self) -> &AuthorizationMetrics {
        &self.inner.metrics
    }

    /// Roles and their bindings; `None`: this server has none.
    pub fn roles(&self) -> Option<&Rbac> {
        self.inner.roles.as_deref()
    }

    /// Puts other authorizers in the place of these; questions that are being answered go on with the old ones.
    pub fn replace(&self, chain: Chain) {
        self.inner.chain.store(Arc::new(chain));
    }

    /// Hands the objects of the server to all authorizers.
    pub fn attach(&self, listers: &dyn Listers) {
        for one in self.inner.chain.load().iter().chain(&self.inner.spare) {
            one.attach(listers);
        }
        if let Some(roles) = self.roles() {
            roles.attach(listers);
        }
    }

    /// Asks the authorizers until one decides. What kept others from it does not matter then.
    pub async fn decide(&self, user: &User, info: &RequestInfo) -> Verdict {
        let (mut reasons, mut errors) = (Vec::new(), Vec::new());
        let chain = self.inner.chain.load_full();
        for authorizer in chain.iter() {
            let verdict = match authorizer.authorize(user, info).decision().await {
                Decision::Allow(reason) => Verdict::allow(reason),
                Decision::Deny(reason) => Verdict::deny(reason, None),
                Decision::FailedClosed(error) => Verdict::deny(String::new(), Some(error)),
                Decision::NoOpinion(reason) => {
                    reasons.push(reason);
                    continue;
                }
                Decision::Failed(error) => {
                    errors.push(error);
                    continue;
                }
            };
            if let Some(label) = authorizer.label() {
                self.inner.metrics.decided(label, verdict.allowed);
            }
            return verdict;
        }
        reasons.retain(|reason| !reason.is_empty());
        Verdict {
            reason: reasons.join("\n"),
            error: (!errors.is_empty()).then(|| aggregate(&errors)),
            ..Verdict::default()
        }
    }

    /// Whether one of the authorizers allows this.
    pub async fn allows(&self, user: &User, info: &RequestInfo) -> bool {
        self.decide(user, info).await.allowed
    }

    /// The rules of all authorizers.
    pub fn rules(&self, user: &User, namespace: &str) -> Rules {
        let mut all = Rules::default();
        for authorizer in self.inner.chain.load().iter() {
            all.append(authorizer.rules(user, namespace));
        }
        all
    }
}

/// Several errors as Go's aggregates show them: each text once, in brackets if there is more than one.
pub fn aggregate(errors: &[String]) -> String {
    let mut shown: Vec<&str> = Vec::new();
    for error in errors {
        if !shown.contains(&error.as_str()) {
            shown.push(error);
        }
    }
    match shown.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::{AlwaysAllow, AlwaysDeny, Answer};

    struct Says(Decision);

    impl Authorizer for Says {
        fn authorize<'a>(&'a self, _user: &'a User, _info: &'a RequestInfo) -> Answer<'a> {
            let decision = self.0.clone();
            Answer::Later(Box::pin(async move { decision }))
        }

        fn rules(&self, _user: &User, _namespace: &str) -> Rules {
            Rules::default()
        }
    }

    fn verdict(chain: Chain) -> Verdict {
        let union = Authorization::new(chain);
        futures_util::FutureExt::now_or_never(union.decide(&User::anonymous(), &RequestInfo::default())).unwrap()
    }

    fn says(decision: Decision) -> Arc<dyn Authorizer> {
        Arc::new(Says(decision))
    }

    #[test]
    fn the_first_opinion_counts() {
        let none = || says(Decision::NoOpinion("a".into()));
        let deny = || says(Decision::Deny("no".into()));
        let got = verdict(vec![none(), deny(), Arc::new(AlwaysAllow)]);
        assert_eq!((got.allowed, got.denied, got.reason.as_str()), (false, true, "no"));
        assert!(verdict(vec![none(), Arc::new(AlwaysAllow), deny()]).allowed);
        let got = verdict(vec![
            none(),
            says(Decision::NoOpinion(String::new())),
            Arc::new(AlwaysDeny),
        ]);
        assert_eq!(
            (got.allowed, got.denied, got.reason.as_str()),
            (false, false, "a\nEverything is forbidden.")
        );
        assert!(!verdict(Vec::new()).allowed);
    }

    #[test]
    fn who_fails_leaves_it_to_the_others() {
        let failed = |text: &str| says(Decision::Failed(text.into()));
        let got = verdict(vec![failed("x"), Arc::new(AlwaysAllow)]);
        assert_eq!((got.allowed, got.error.as_deref()), (true, None));
        let got = verdict(vec![failed("x"), failed("y"), failed("x")]);
        assert_eq!((got.allowed, got.error.as_deref()), (false, Some("[x, y]")));
        let got = verdict(vec![failed("")]);
        assert_eq!(got.error.as_deref(), Some(""), "an error without words is one");
        let closed = says(Decision::FailedClosed("z".into()));
        let got = verdict(vec![failed("x"), closed, Arc::new(AlwaysAllow)]);
        assert_eq!(
            (got.allowed, got.denied, got.error.as_deref()),
            (false, true, Some("z"))
        );
    }
}
