//! Issues a token that stands for a service account.

use keelson_api::authentication_k8s_io::v1::{BoundObjectReference, TokenRequest};
use keelson_api::core::v1::Pod;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Kind;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::Time;
use keelson_registry::{Answer, Call, Handler, Reply};
use serde_json::{Map, Value, json};

use crate::typed::{body, typed};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// Seconds that a token is good for when the request does not say. The definition says the same.
const DEFAULT_SECONDS: i64 = 60 * 60;
const MIN_SECONDS: i64 = 10 * 60;
const MAX_SECONDS: i64 = 1 << 32;
/// What kubelets ask for on behalf of pods. Programs of old that read such a token only once get one that is good for
/// longer, and that says when it ought to have been replaced.
const KUBELET_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

pub struct Issue;

impl Handler for Issue {
    fn create<'a>(&'a self, call: &'a Call<'a>, object: Box<dyn Kind>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let request: TokenRequest = *body(object)?;
            let issued = issue(call, request).await?;
            Ok(Reply::Kind(201, Box::new(issued)))
        })
    }
}

async fn issue(call: &Call<'_>, mut request: TokenRequest) -> Result<TokenRequest, StatusError> {
    let name = call.name();
    check_name(&request.metadata, name)?;
    let accounts = call.stored("", "serviceaccounts")?;
    let account = accounts.get(&call.context.namespace, name).await?.object;
    check_uid(&request.metadata, account.meta())?;
    let spec = &mut request.spec;
    let issuer = call
        .authentication
        .issuer
        .as_deref()
        .ok_or_else(|| StatusError::internal_error("this server has no key that signs tokens"))?;
    let asked = *spec.expiration_seconds.get_or_insert(DEFAULT_SECONDS);
    check_seconds(asked)?;
    let bound = match spec.bound_object_ref.as_deref() {
        Some(reference) => bound(call, name, reference).await?,
        None => Bound::default(),
    };
    let own = &call.authentication.audiences;
    if spec.audiences.is_empty() {
        spec.audiences.clone_from(own);
    }
    let seconds = issuer.lifetimes.longest.map_or(asked, |longest| asked.min(longest));
    if seconds < asked {
        call.context.warn(format!(
            "requested expiration of {asked} seconds shortened to {seconds} seconds"
        ));
        spec.expiration_seconds = Some(seconds);
    }
    let for_kubelet = seconds == KUBELET_SECONDS && bound.is_pod && spec.audiences.iter().all(|a| own.contains(a));
    let id = call.backend.new_uid();
    let claims = Claims {
        account: account.meta(),
        audiences: &spec.audiences,
        now: call.context.now.unix_seconds(),
        seconds,
        extended: for_kubelet && issuer.lifetimes.extend,
        bound: bound.claims,
        id: id.clone(),
    };
    let claims = claims.to_json(issuer.issuer());
    request.status.token = issuer.sign(&claims).map_err(StatusError::internal_error)?;
    let annotation = "authentication.kubernetes.io/issued-credential-id";
    call.context.annotate(annotation, || format!("JTI={id}"));
    request.status.expiration_timestamp = after(&call.context.now, seconds);
    fill_metadata(&mut request.metadata, account.meta(), call.context.now);
    Ok(request)
}

fn check_name(meta: &ObjectMeta, name: &str) -> Result<(), StatusError> {
    if meta.name.is_empty() || meta.name == name {
        return Ok(());
    }
    let path = Path::new("metadata").child("name");
    let text = "must match the service account name if specified";
    let errors: ErrorList = FieldError::invalid(&path, &meta.name, text).into();
    Err(StatusError::invalid(GROUP, KIND, name, &errors))
}

/// Whoever means an account that was there before gets no token of the one that took its place.
fn check_uid(meta: &ObjectMeta, account: &ObjectMeta) -> Result<(), StatusError> {
    if meta.uid.is_empty() || meta.uid == account.uid {
        return Ok(());
    }
    let text = format!(
        "the UID in the token request ({}) does not match the UID of the service account ({})",
        meta.uid, account.uid
    );
    Err(StatusError::conflict(GROUP, KIND, &account.name, &text))
}

fn check_seconds(seconds: i64) -> Result<(), StatusError> {
    let text = match seconds {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let path = Path::new("spec").child("expirationSeconds");
    let errors: ErrorList = FieldError::invalid(&path, seconds, text).into();
    Err(StatusError::invalid(GROUP, KIND, "", &errors))
}

fn fill_metadata(meta: &mut ObjectMeta, account: &ObjectMeta, now: Time) {
    meta.name.clone_from(&account.name);
    meta.namespace.clone_from(&account.namespace);
    meta.uid.clone_from(&account.uid);
    meta.creation_timestamp = now.truncate_to_seconds();
}

fn after(now: &Time, seconds: i64) -> Time {
    Time::from_unix(now.unix_seconds().saturating_add(seconds), 0)
}

/// What a token says of the object that it dies with.
#[derive(Default)]
struct Bound {
    claims: Map<String, Value>,
    is_pod: bool,
}

async fn bound(call: &Call<'_>, account: &str, reference: &BoundObjectReference) -> Result<Bound, StatusError> {
    let (group, version) = match reference.api_version.split_once('/') {
        // What names no group and version counts as if it were absent.
        Some((_, rest)) if rest.contains('/') => ("", ""),
        Some(parts) => parts,
        None => ("", reference.api_version.as_str()),
    };
    let (plural, namespace) = match (group, reference.kind.as_str()) {
        ("", "Pod") => ("pods", call.context.namespace.as_str()),
        ("", "Secret") => ("secrets", call.context.namespace.as_str()),
        ("", "Node") => ("nodes", ""),
        (_, kind) => {
            return Err(StatusError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let object = call.stored("", plural)?.get(namespace, &reference.name).await?.object;
    let pod = typed::<Pod>(&*object);
    if pod.is_some_and(|p| p.spec.service_account_name != account) {
        return Err(StatusError::bad_request(format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        )));
    }
    if !reference.uid.is_empty() && reference.uid != object.meta().uid {
        let text = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been \
             deleted and then recreated",
            reference.uid
        );
        return Err(StatusError::conflict("", &reference.kind, &reference.name, text));
    }
    let mut claims = Map::new();
    claims.insert(reference.kind.to_lowercase(), identity(object.meta()));
    if let Some(node) = pod.map(|p| p.spec.node_name.as_str()).filter(|n| !n.is_empty()) {
        let found = call.stored("", "nodes")?.find("", node).await?;
        let claim = found.map_or_else(|| json!({ "name": node }), |s| identity(s.object.meta()));
        claims.insert("node".to_owned(), claim);
    }
    Ok(Bound {
        claims,
        is_pod: pod.is_some(),
    })
}

fn identity(meta: &ObjectMeta) -> Value {
    json!({ "name": meta.name, "uid": meta.uid })
}

/// What a token says.
struct Claims<'a> {
    account: &'a ObjectMeta,
    audiences: &'a [String],
    /// Seconds since 1970.
    now: i64,
    seconds: i64,
    extended: bool,
    bound: Map<String, Value>,
    id: String,
}

impl Claims<'_> {
    fn to_json(&self, issuer: &str) -> Value {
        let (namespace, name) = (&self.account.namespace, &self.account.name);
        let mut private = self.bound.clone();
        private.insert("namespace".to_owned(), json!(namespace));
        private.insert("serviceaccount".to_owned(), identity(self.account));
        let lifetime = match self.extended {
            true => {
                private.insert("warnafter".to_owned(), json!(self.now + self.seconds));
                EXTENDED_SECONDS
            }
            false => self.seconds,
        };
        json!({
            "aud": self.audiences,
            "exp": self.now + lifetime,
            "iat": self.now,
            "iss": issuer,
            "jti": self.id,
            "kubernetes.io": private,
            "nbf": self.now,
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_the_account_that_is_meant() {
        let of = |uid: &str| ObjectMeta {
            name: "a".to_owned(),
            uid: uid.to_owned(),
            ..ObjectMeta::default()
        };
        assert_eq!(check_uid(&of(""), &of("u")), Ok(()));
        assert_eq!(check_uid(&of("u"), &of("u")), Ok(()));
        let error = check_uid(&of("v"), &of("u")).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                409,
                "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"a\": the UID in the token request (v) \
                 does not match the UID of the service account (u)"
            )
        );
    }

    fn claims(extended: bool) -> Value {
        let account = ObjectMeta {
            name: "default".to_owned(),
            namespace: "ns".to_owned(),
            uid: "u".to_owned(),
            ..ObjectMeta::default()
        };
        let claims = Claims {
            account: &account,
            audiences: &["a".to_owned()],
            now: 1000,
            seconds: KUBELET_SECONDS,
            extended,
            bound: Map::from_iter([("pod".to_owned(), json!({"name": "p", "uid": "v"}))]),
            id: "i".to_owned(),
        };
        claims.to_json("https://issuer")
    }

    #[test]
    fn claims_are_those_of_bound_tokens() {
        let expected = json!({
            "aud": ["a"],
            "exp": 4607,
            "iat": 1000,
            "iss": "https://issuer",
            "jti": "i",
            "kubernetes.io": {
                "namespace": "ns",
                "pod": {"name": "p", "uid": "v"},
                "serviceaccount": {"name": "default", "uid": "u"},
            },
            "nbf": 1000,
            "sub": "system:serviceaccount:ns:default",
        });
        assert_eq!(claims(false), expected);
    }

    #[test]
    fn tokens_of_pods_live_longer_and_say_when_they_should_not() {
        let claims = claims(true);
        assert_eq!(claims["exp"], 1000 + EXTENDED_SECONDS);
        assert_eq!(claims["kubernetes.io"]["warnafter"], 4607);
    }

    #[test]
    fn durations_have_bounds() {
        for (seconds, fits) in [(599, false), (600, true), (1 << 32, true), ((1 << 32) + 1, false)] {
            assert_eq!(check_seconds(seconds).is_ok(), fits, "{seconds}");
        }
    }
}
