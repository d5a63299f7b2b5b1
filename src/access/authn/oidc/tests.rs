//! Tokens of a local issuer.

use std::sync::Mutex;

use keelson_machinery::time::Time;
use keelson_net::client::Way;
use keelson_net::client::stub::{Reply, Stub};
use keelson_net::tls::certs::KeyPem;
use serde_json::json;

use super::*;
use crate::authn::jwt::Algorithm;
use crate::authn::token_issuer::TokenIssuer;

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
    /// What is answered to whoever knows the password.
    elsewhere: Arc<Mutex<String>>,
    signer: TokenIssuer,
    egress: Egress,
}

fn signer(url: &str) -> TokenIssuer {
    TokenIssuer::new(&KeyPem::create().unwrap().private_pem, url).unwrap()
}

impl Setting {
    async fn new() -> Setting {
        let keys: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (served, base) = (keys.clone(), Arc::new(Mutex::new(String::new())));
        let told = base.clone();
        let elsewhere: Arc<Mutex<String>> = Arc::default();
        let groups = elsewhere.clone();
        let stub = Stub::https(move |seen| {
            let base = told.lock().unwrap().clone();
            match seen.path.as_str() {
                "/.well-known/openid-configuration" => Reply::new(
                    200,
                    json!({"issuer": base, "jwks_uri": format!("{base}/keys")}).to_string(),
                ),
                "/keys" => Reply::new(200, json!({"keys": *served.lock().unwrap()}).to_string()),
                "/groups" if seen.header("authorization") == "Bearer pass" => {
                    Reply::new(200, groups.lock().unwrap().clone())
                }
                _ => Reply::new(404, ""),
            }
        })
        .await;
        *base.lock().unwrap() = stub.url("");
        let signer = signer(&stub.url(""));
        keys.lock().unwrap().push(signer.verifying_key().to_jwk());
        Setting {
            stub,
            keys,
            elsewhere,
            signer,
            egress: Egress::default(),
        }
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
            way: Way::Direct,
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
        let tokens = OidcTokens::new(settings, &self.egress).unwrap();
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
        settings.groups = Some(Mapping::Expression(compile("claims.roles.split(',').map(role, role)")));
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
            json!({"email": "Ann@X", "roles": 5, "iat": NOW}),
            Err(
                "oidc: error evaluating group claim expression: expression 'claims.roles.split(',').map(role, role)' \
                 resulted in error: no such overload: split(double, string)",
            ),
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

#[tokio::test]
async fn groups_are_fetched_from_whoever_the_token_says_has_them() {
    let setting = Setting::new().await;
    let tokens = setting.tokens(|_| {});
    let source = |password: &str| json!({"endpoint": setting.stub.url("/groups"), "access_token": password});
    let token = |changes: Value| {
        let mut claims = setting.claims(changes);
        let own = claims.as_object_mut().unwrap();
        own.retain(|key, value| key != "groups" || !value.is_null());
        setting.signer.sign(&claims).unwrap()
    };
    let far = |password: &str| {
        token(json!({"groups": null, "_claim_names": {"groups": "far"}, "_claim_sources": {"far": source(password)}}))
    };
    let told = |changes: Value| *setting.elsewhere.lock().unwrap() = token(changes);
    let ann = |groups: &[&str]| {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Ok(Some(("o:ann".to_owned(), groups)))
    };
    told(json!({"groups": ["x", "y"]}));
    assert_eq!(ask(&tokens, &far("pass")).await, ann(&["x", "y"]));
    assert!(ask(&tokens, &far("wrong")).await.unwrap_err().contains("status 404"));
    let both = json!({"_claim_names": {"groups": "far"}, "_claim_sources": {"far": source("pass")}});
    assert_eq!(ask(&tokens, &token(both)).await, ann(&["a"]), "its own count first");
    for (changes, want) in [
        (json!({"groups": ["x"], "aud": "others"}), "expected audience"),
        (json!({"groups": ["x"], "exp": NOW - 1}), "expired"),
        (json!({"groups": null}), "could not find distributed claim \"groups\""),
        (json!({"groups": ["x"], "iss": "http://plain"}), "no https"),
    ] {
        told(changes);
        let error = ask(&tokens, &far("pass")).await.unwrap_err();
        assert!(error.contains(want), "{error}");
    }
    *setting.elsewhere.lock().unwrap() = "nonsense".to_owned();
    assert!(ask(&tokens, &far("pass")).await.unwrap_err().contains("malformed jwt"));
    let lost = token(json!({"groups": null, "_claim_names": {"groups": "far"}}));
    assert!(ask(&tokens, &lost).await.unwrap_err().contains("no source"));
}

#[tokio::test]
async fn an_issuer_is_asked_on_the_way_that_was_chosen_for_it() {
    let mut setting = Setting::new().await;
    // Nobody listens there.
    let proxy = "proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://127.0.0.1:1'}}";
    let text = format!(
        "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n- name: \
         controlplane\n  connection: {{{proxy}}}\n"
    );
    setting.egress = Egress::read(text.as_bytes()).unwrap();
    let token = setting.signer.sign(&setting.claims(json!({}))).unwrap();
    for (way, reached) in [(Way::Direct, true), (Way::Cluster, true), (Way::ControlPlane, false)] {
        let tokens = setting.tokens(|settings| settings.way = way);
        let outcome = ask(&tokens, &token).await;
        assert_eq!(outcome.is_ok(), reached, "{way:?}: {outcome:?}");
    }
}

/// kube-apiserver does not take the parts of a text for groups as they are.
#[tokio::test]
async fn parts_of_a_text_are_no_groups() {
    let setting = Setting::new().await;
    let tokens = setting.tokens(|settings| {
        let program = claims_environment().compile("claims.roles.split(',')").unwrap();
        settings.groups = Some(Mapping::Expression(Arc::new(program)));
    });
    let token = setting.signer.sign(&setting.claims(json!({"roles": "a,b"}))).unwrap();
    let error = ask(&tokens, &token).await.unwrap_err();
    assert!(
        error.contains("expression must return a string or a list of strings"),
        "{error}"
    );
}

/// Whoever the issuer signs for: claims that are said twice, or are of another type, say nothing; texts are compared as
/// they stand; a moment is the last one but one.
#[tokio::test]
async fn claims_that_are_not_what_they_ought_to_be_name_nobody() {
    let setting = Setting::new().await;
    let tokens = setting.tokens(|_| {});
    let base = |name: &str| match name {
        "iss" => json!(setting.stub.url("")).to_string(),
        "aud" => r#""us""#.to_owned(),
        "exp" => (NOW + 60).to_string(),
        _ => r#""ann""#.to_owned(),
    };
    let names = |claims: &str| {
        let others = ["iss", "aud", "exp", "sub"]
            .into_iter()
            .filter(|name| !claims.contains(&format!("\"{name}\":")));
        let others: Vec<String> = others.map(|name| format!("\"{name}\":{}", base(name))).collect();
        let all = [others.join(","), claims.to_owned()]
            .into_iter()
            .filter(|part| !part.is_empty());
        format!("{{{}}}", all.collect::<Vec<_>>().join(","))
    };
    let issuer = base("iss");
    for claims in [
        r#""aud":["them","us"]"#.to_owned(),
        format!(r#""exp":{}"#, NOW + 1),
        format!(r#""exp":"{}""#, NOW + 1),
        format!(r#""nbf":{}"#, NOW + 60),
    ] {
        let token = setting.signer.sign_text(&names(&claims)).unwrap();
        assert!(ask(&tokens, &token).await.unwrap().is_some(), "{claims}");
    }
    for claims in [
        r#""aud":"them","aud":"us""#.to_owned(),
        r#""aud":"us ""#.to_owned(),
        r#""aud":"US""#.to_owned(),
        r#""aud":"them us""#.to_owned(),
        r#""aud":[["us"]]"#.to_owned(),
        r#""aud":{"us":true}"#.to_owned(),
        r#""aud":null"#.to_owned(),
        r#""aud":[]"#.to_owned(),
        format!(r#""exp":{NOW}"#),
        r#""exp":null"#.to_owned(),
        r#""exp":true"#.to_owned(),
        r#""exp":"tomorrow""#.to_owned(),
        r#""exp":1e300"#.to_owned(),
        format!(r#""exp":[{}]"#, NOW + 60),
        format!(r#""exp":{},"exp":{}"#, NOW - 60, NOW + 60),
        format!(r#""nbf":{}"#, NOW + 61),
        r#""sub":"root","sub":"ann""#.to_owned(),
        r#""sub":["ann"]"#.to_owned(),
        r#""sub":{"name":"ann"}"#.to_owned(),
        r#""groups":{"a":true}"#.to_owned(),
        r#""groups":["a",["b"]]"#.to_owned(),
        format!(r#""iss":"https://other","iss":{issuer}"#),
        format!(r#""iss":{issuer},"iss":{issuer}"#),
        format!(r#""iss":[{issuer}]"#),
    ] {
        let token = setting.signer.sign_text(&names(&claims)).unwrap();
        assert!(!matches!(ask(&tokens, &token).await, Ok(Some(_))), "{claims}");
    }
    let masters = setting.tokens(|settings| {
        settings.groups = Some(Mapping::Claim {
            name: "groups".to_owned(),
            prefix: "o:".to_owned(),
        });
    });
    let claims = names(r#""sub":"system:admin","groups":"system:masters""#);
    let token = setting.signer.sign_text(&claims).unwrap();
    let want = ("o:system:admin".to_owned(), vec!["o:system:masters".to_owned()]);
    assert_eq!(ask(&masters, &token).await, Ok(Some(want)));
}

/// A token without a signature, with one that a public key makes, or under the name of a key that did not sign.
#[tokio::test]
async fn only_a_key_of_the_issuer_signs() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
    let setting = Setting::new().await;
    let tokens = setting.tokens(|_| {});
    let good = setting.signer.sign(&setting.claims(json!({}))).unwrap();
    assert!(ask(&tokens, &good).await.unwrap().is_some());
    let parts: Vec<&str> = good.split('.').collect();
    let header: Value = serde_json::from_slice(&BASE64.decode(parts[0]).unwrap()).unwrap();
    let with = |changes: Value, signature: &str| {
        let mut header = header.clone();
        for (key, value) in changes.as_object().unwrap() {
            header[key] = value.clone();
        }
        format!("{}.{}.{signature}", BASE64.encode(header.to_string()), parts[1])
    };
    let public = setting.keys.lock().unwrap()[0].to_string();
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
    let hs256 = with(json!({"alg": "HS256"}), "");
    let mac = ring::hmac::sign(&secret, hs256.trim_end_matches('.').as_bytes());
    let mut forged = vec![
        format!("{hs256}{}", BASE64.encode(mac)),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}="),
        format!("{good}."),
    ];
    for alg in ["none", "None", "NONE", "", "HS256", "RS256", "ES384", "EdDSA"] {
        forged.push(with(json!({"alg": alg}), ""));
        forged.push(with(json!({"alg": alg}), parts[2]));
    }
    // The signature is of the header too.
    for kid in ["", "other", "../keys", "https://other/keys", "a' or 'a"] {
        forged.push(with(json!({"kid": kid}), parts[2]));
    }
    for more in [
        json!({"jku": "https://other/keys"}),
        json!({"x5u": "https://other/keys"}),
        json!({"crit": ["exp"]}),
        json!({"typ": "at+jwt"}),
    ] {
        forged.push(with(more, parts[2]));
    }
    // Another key that calls itself as the issuer's does, and that the token brings along.
    let other = signer(&setting.stub.url(""));
    let foreign = other.sign(&setting.claims(json!({}))).unwrap();
    forged.push(foreign);
    for token in forged {
        assert!(!matches!(ask(&tokens, &token).await, Ok(Some(_))), "{token}");
    }
    assert!(ask(&tokens, &good).await.unwrap().is_some());
}

/// Keys of one name: any of them may have signed, and none that the issuer does not show.
#[tokio::test]
async fn keys_that_share_a_name_are_told_apart_by_their_signatures() {
    let setting = Setting::new().await;
    let mut other = signer("").verifying_key().to_jwk();
    other["kid"] = setting.keys.lock().unwrap()[0]["kid"].clone();
    setting.keys.lock().unwrap().insert(0, other);
    let tokens = setting.tokens(|_| {});
    let good = setting.signer.sign(&setting.claims(json!({}))).unwrap();
    assert!(ask(&tokens, &good).await.unwrap().is_some());
    setting.keys.lock().unwrap().pop();
    let tokens = setting.tokens(|_| {});
    assert!(!matches!(ask(&tokens, &good).await, Ok(Some(_))));
}
