//! Issued tokens: they name the account by uid, and may die with a pod, a secret or a node.

use serde::Deserialize;

use super::{INVALIDATED, Refusal, ServiceAccountTokens, account_user, check_reference};
use crate::authn::jwt::{Moment, RegisteredClaims, Untimely, null_is_none};
use crate::authn::objects::Source;
use crate::user::{EXTRA_CREDENTIAL_ID, User};

/// The claims of this kind of token alone.
#[derive(Deserialize)]
pub(super) struct PrivateClaims {
    #[serde(rename = "kubernetes.io", default, deserialize_with = "null_is_none")]
    kubernetes: Kubernetes,
}

#[derive(Deserialize, Default)]
struct Kubernetes {
    #[serde(default, deserialize_with = "null_is_none")]
    namespace: String,
    #[serde(default, deserialize_with = "null_is_none")]
    serviceaccount: Reference,
    #[serde(default)]
    pod: Option<Reference>,
    #[serde(default)]
    secret: Option<Reference>,
    #[serde(default)]
    node: Option<Reference>,
    /// When it ought to have been replaced.
    #[serde(default)]
    warnafter: Option<Moment>,
}

#[derive(Deserialize, Default)]
struct Reference {
    #[serde(default, deserialize_with = "null_is_none")]
    name: String,
    #[serde(default, deserialize_with = "null_is_none")]
    uid: String,
}

impl ServiceAccountTokens {
    pub(super) async fn bound_user(
        &self,
        registered: &RegisteredClaims,
        claims: PrivateClaims,
        notes: &mut Vec<(&'static str, String)>,
    ) -> Result<User, Refusal> {
        let claims = claims.kubernetes;
        registered.check_time(self.now()).map_err(untimely)?;
        self.check_account(&claims).await?;
        let namespace = claims.namespace.as_str();
        if let Some(secret) = &claims.secret {
            self.check_alive(&self.secrets, namespace, secret, "secret").await?;
        }
        match (&claims.pod, &claims.node) {
            (Some(pod), _) => self.check_alive(&self.pods, namespace, pod, "pod").await?,
            // The node of a pod is told, not demanded: it may go away before the pod does.
            (None, Some(node)) => self.check_alive(&self.nodes, "", node, "node").await?,
            (None, None) => {}
        }
        let account = &claims.serviceaccount;
        let mut user = account_user(namespace, &account.name, &account.uid);
        self.note_age(&user, registered, &claims, notes);
        let id = Some(&registered.jti).filter(|id| !id.is_empty());
        if let Some(id) = id {
            user.extra
                .insert(EXTRA_CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        let mut tell = |what: &str, reference: &Option<Reference>| {
            let Some(Reference { name, uid }) = reference else {
                return;
            };
            for (part, value) in [("name", name), ("uid", uid)] {
                if !value.is_empty() {
                    let key = format!("authentication.kubernetes.io/{what}-{part}");
                    user.extra.insert(key, vec![value.clone()]);
                }
            }
        };
        tell("pod", &claims.pod);
        tell("node", &claims.node);
        Ok(user)
    }

    async fn check_account(&self, claims: &Kubernetes) -> Result<(), Refusal> {
        let (namespace, Reference { name, uid }) = (&claims.namespace, &claims.serviceaccount);
        check_reference(namespace, name)?;
        let found = self.accounts.find(namespace, name).await?;
        let account = found.ok_or_else(|| format!("serviceaccounts \"{name}\" not found"))?;
        if self.is_gone(&*account) {
            return Err(format!("service account {namespace}/{name} has been deleted").into());
        }
        let stored = &account.meta().uid;
        match stored == uid {
            true => Ok(()),
            false => Err(format!("service account UID ({stored}) does not match claim ({uid})").into()),
        }
    }

    /// Whether the object that the token is bound to is there, and is still the same.
    async fn check_alive(
        &self,
        source: &Source,
        namespace: &str,
        reference: &Reference,
        what: &str,
    ) -> Result<(), Refusal> {
        let Reference { name, uid } = reference;
        // An object that can't be looked up is as good as gone; why, the log may know.
        let found = source.find(namespace, name).await.unwrap_or_else(|error| {
            tracing::warn!(
                what,
                namespace,
                name,
                %error,
                "what a token is bound to can't be looked up"
            );
            None
        });
        let object = found.filter(|object| !self.is_gone(&**object)).ok_or(INVALIDATED)?;
        let stored = &object.meta().uid;
        match stored == uid {
            true => Ok(()),
            false => {
                Err(format!("{what} UID ({stored}) does not match service account {what} ref claim ({uid})").into())
            }
        }
    }

    fn note_age(
        &self,
        user: &User,
        registered: &RegisteredClaims,
        claims: &Kubernetes,
        notes: &mut Vec<(&'static str, String)>,
    ) {
        let now = self.now();
        if claims.warnafter.is_none_or(|moment| now <= moment.0) {
            self.count(|metrics| &metrics.valid);
            return;
        }
        self.count(|metrics| &metrics.stale);
        let age = registered.iat.map_or(0, |issued| now - issued.0);
        notes.push((
            "authentication.k8s.io/stale-token",
            format!("subject: {}, seconds after warning threshold: {age}", user.name),
        ));
    }
}

fn untimely(why: Untimely) -> Refusal {
    Refusal::from(match why {
        Untimely::Early => "service account token is not valid yet",
        Untimely::Expired => "service account token has expired",
        Untimely::IssuedInTheFuture => "service account token is issued in the future",
    })
}
