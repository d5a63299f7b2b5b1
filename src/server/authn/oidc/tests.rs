//! Tokens of a local issuer.

use std::sync::Mutex;

use keelson_machinery::time::Time;
use serde_json::json;

use super::*;
use crate::authn::jwt::Algorithm;
use crate::authn::token_issuer::TokenIssuer;
use crate::outgoing::stub::{Reply, Stub};
use crate::tls::certs::KeyPem;

const NOW: i64 = 1_800_000_000;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Time {
        Time::from_unix(NOW, 0)
    }
}

/// An issuer, whose keys can be replaced, and who believes it.
struct Setting {
    stub: Stub,
    keys: Arc<Mutex<Vec<Value>>>,
    signer: TokenIssuer,
}

fn signer(url: &str) -> TokenIssuer {
    TokenIssuer::new(&KeyPem::create().unwrap().private_pem, url).unwrap()
}

impl Setting {
    async fn new() -> Setting {
        let keys: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (served, base) = (keys.clone(), Arc::new(Mutex::new(String::new())));
        let told = base.clone();
        let stub = Stub::https(move |seen| {
            let base = told.lock().unwrap().clone();
            match seen.path.as_str() {
                "/.well-known/openid-configuration" => Reply::new(
                    200,
                    json!({"issuer": base, "jwks_uri": format!("{base}/keys")}).to_string(),
                ),
                "/keys" => Reply::new(200, json!({"keys": *served.lock().unwrap()}).to_string()),
                _ => Reply::new(404, ""),
            }
        })
        .await;
        *base.lock().unwrap() = stub.url("");
        let signer = signer(&stub.url(""));
        keys.lock().unwrap().push(signer.verifying_key().to_jwk());
        Setting { stub, keys, signer }
    }

    fn settings(&self) -> OidcSettings {
        let claim = |name: &str, prefix: &str| Mapping::Claim {
            name: name.to_owned(),
            prefix: prefix.to_owned(),
        };
        OidcSettings {
            url: self.stub.url(""),
            discovery_url: None,
            authorities: Some(self.stub.ca_pem.clone()),
            audiences: vec!["us".to_owned()],
            algorithms: vec![Algorithm::Es256],
            claim_rules: Vec::new(),
            username: claim("sub", "o:"),
            groups: Some(claim("groups", "")),
            uid: None,
            extra: Vec::new(),
            user_rules: Vec::new(),
        }
    }

    fn tokens(&self, change: impl FnOnce(&mut OidcSettings)) -> OidcTokens {
        let mut settings = self.settings();
        change(&mut settings);
        let tokens = OidcTokens::new(settings).unwrap();
        tokens.attach_to(&(Arc::new(Fixed) as Arc<dyn Clock>), &Arc::default());
        tokens
    }

    fn claims(&self, changes: Value) -> Value {
        let mut claims = json!({"iss": self.stub.url(""), "aud": "us", "sub": "ann", "exp": NOW + 60, "groups": ["a"]});
        for (key, value) in changes.as_object().unwrap() {
            claims[key] = value.clone();
        }
        claims
    }
}

async fn ask(tokens: &OidcTokens, token: &str) -> Result<Option<(String, Vec<String>)>, String> {
    let outcome = tokens.authenticate(token, &[]).outcome().await;
    let found = outcome.map_err(|refusal| refusal.to_string())?;
    Ok(found.map(|identity| (identity.user.name.clone(), identity.user.groups.clone())))
}

#[tokio::test]
async fn a_token_of_the_issuer_names_a_user() {
    let setting = Setting::new().await;
    let tokens = setting.tokens(|_| {});
    let token = setting.signer.sign(&setting.claims(json!({}))).unwrap();
    let ann = Ok(Some(("o:ann".to_owned(), vec!["a".to_owned()])));
    for _ in 0..3 {
        assert_eq!(ask(&tokens, &token).await, ann);
    }
    let other = setting
        .signer
        .sign(&setting.claims(json!({"iss": "https://other"})))
        .unwrap();
    assert_eq!(ask(&tokens, &other).await, Ok(None));
}

#[tokio::test]
async fn what_is_wrong_with_a_token_is_told() {
    let setting = Setting::new().await;
    let tokens = setting.tokens(|_| {});
    for (changes, want) in [
        (
            json!({"aud": ["them"]}),
            "oidc: expected audience \"us\" got [\"them\"]",
        ),
        (
            json!({"exp": NOW - 1}),
            "oidc: token is expired (Token Expiry: 2027-01-15 07:59:59 +0000 UTC)",
        ),
        (
            json!({"nbf": NOW + 100}),
            "oidc: current time 2027-01-15 08:00:00 +0000 UTC before the nbf (not before) time: 2027-01-15 08:01:40 \
             +0000 UTC",
        ),
        (
            json!({"sub": 5}),
            "oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field idToken.sub of type \
             string",
        ),
    ] {
        let token = setting.signer.sign(&setting.claims(changes)).unwrap();
        assert_eq!(
            ask(&tokens, &token).await.unwrap_err(),
            format!("oidc: verify token: {want}")
        );
    }
    let foreign = signer("").sign(&setting.claims(json!({}))).unwrap();
    assert_eq!(
        ask(&tokens, &foreign).await.unwrap_err(),
        "oidc: verify token: failed to verify signature: failed to verify id token signature"
    );
    let groups = setting.signer.sign(&setting.claims(json!({"groups": [1]}))).unwrap();
    assert!(
        ask(&tokens, &groups)
            .await
            .unwrap_err()
            .starts_with("oidc: parse groups claim")
    );
    let only_rsa = setting.tokens(|settings| settings.algorithms = vec![Algorithm::Rs256]);
    let token = setting.signer.sign(&setting.claims(json!({}))).unwrap();
    assert_eq!(
        ask(&only_rsa, &token).await.unwrap_err(),
        "oidc: verify token: oidc: id token signed with unsupported algorithm, expected [\"RS256\"] got \"ES256\""
    );
}

#[tokio::test]
async fn new_keys_are_read_when_a_token_needs_them_and_old_ones_are_given_up() {
    let setting = Setting::new().await;
    let tokens = setting.tokens(|_| {});
    let old = setting.signer.sign(&setting.claims(json!({}))).unwrap();
    ask(&tokens, &old).await.unwrap();
    let next = signer("");
    *setting.keys.lock().unwrap() = vec![next.verifying_key().to_jwk()];
    let new = next.sign(&setting.claims(json!({"sub": "bob"}))).unwrap();
    assert_eq!(ask(&tokens, &new).await.unwrap().unwrap().0, "o:bob");
    assert!(ask(&tokens, &old).await.is_err());
}

/// Tokens that anybody can make up must not become a flood of calls.
#[tokio::test]
async fn made_up_tokens_do_not_flood_the_issuer() {
    let setting = Setting::new().await;
    let tokens = setting.tokens(|_| {});
    for _ in 0..30 {
        let made_up = signer("").sign(&setting.claims(json!({}))).unwrap();
        ask(&tokens, &made_up).await.unwrap_err();
    }
    let asked = setting.stub.seen().iter().filter(|seen| seen.path == "/keys").count();
    assert_eq!(asked, 10);
}

#[tokio::test]
async fn expressions_map_claims_and_judge_them() {
    let setting = Setting::new().await;
    let compile = |source: &str| Arc::new(claims_environment().compile(source).unwrap());
    let tokens = setting.tokens(|settings| {
        settings.username = Mapping::Expression(compile("claims.email.lowerAscii()"));
        settings.groups = Some(Mapping::Expression(compile("claims.roles.split(',')")));
        settings.claim_rules = vec![ClaimRule::Holds(Rule {
            program: compile("claims.exp - claims.iat <= 3600"),
            message: "too long".to_owned(),
        })];
        settings.user_rules = vec![Rule {
            program: Arc::new(
                user_environment()
                    .compile("!user.username.startsWith('system:')")
                    .unwrap(),
            ),
            message: "reserved".to_owned(),
        }];
    });
    for (changes, want) in [
        (
            json!({"email": "Ann@X", "roles": "a,b", "iat": NOW}),
            Ok(("ann@x".to_owned(), vec!["a".to_owned(), "b".to_owned()])),
        ),
        (
            json!({"email": "system:x", "roles": "", "iat": NOW}),
            Err(
                "oidc: error evaluating user info validation rule: validation expression \
                 '!user.username.startsWith('system:')' failed: reserved",
            ),
        ),
        (
            json!({"email": "a", "roles": "", "iat": NOW - 9999}),
            Err(
                "oidc: error evaluating claim validation expression: validation expression 'claims.exp - claims.iat <= \
                 3600' failed: too long",
            ),
        ),
        (
            json!({"roles": ""}),
            Err(
                "oidc: error evaluating username claim expression: expression 'claims.email.lowerAscii()' resulted in \
                 error: no such key: email",
            ),
        ),
        (
            json!({"email": "", "roles": ""}),
            Err("oidc: empty username via CEL expression is not allowed"),
        ),
    ] {
        let token = setting.signer.sign(&setting.claims(changes)).unwrap();
        let got = ask(&tokens, &token).await.map(Option::unwrap);
        assert_eq!(got, want.map_err(str::to_owned));
    }
}

#[tokio::test]
async fn an_address_that_is_not_verified_names_nobody() {
    let setting = Setting::new().await;
    let tokens = setting.tokens(|settings| {
        settings.username = Mapping::Claim {
            name: "email".to_owned(),
            prefix: String::new(),
        };
    });
    for (verified, fine) in [(json!(true), true), (json!(false), false), (json!("true"), false)] {
        let claims = setting.claims(json!({"email": "a@x", "email_verified": verified}));
        let token = setting.signer.sign(&claims).unwrap();
        assert_eq!(ask(&tokens, &token).await.is_ok(), fine, "{verified}");
    }
    let token = setting.signer.sign(&setting.claims(json!({"email": "a@x"}))).unwrap();
    assert!(ask(&tokens, &token).await.is_ok(), "an issuer may say nothing about it");
}
