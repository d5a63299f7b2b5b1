//! A request with a bearer token of usual length that is remembered, and one that has to be looked at.

#![allow(clippy::unwrap_used, reason = "what fails here stops the benchmark, as it should")]

use std::hint::black_box;
use std::sync::Arc;

use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::FutureExt;
use keelson_access::authn::token_cache::TokenCache;
use keelson_access::authn::token_file::StaticTokens;
use keelson_access::authn::tokens::{ForAudiences, Tokens};
use keelson_access::authn::{Authentication, Credentials};
use keelson_access::user::User;

/// Characters of a service account's token.
const LENGTH: usize = 900;

fn authentication(remember_ms: u64) -> Authentication {
    let user = User {
        name: "system:serviceaccount:default:default".to_owned(),
        ..User::default()
    };
    let own = vec!["https://kubernetes.default.svc".to_owned()];
    let tokens = ForAudiences {
        own: own.clone(),
        tokens: StaticTokens::new([("t".repeat(LENGTH), user)]),
    };
    let cache = TokenCache::new(remember_ms, 0).unwrap();
    Authentication {
        chain: vec![Tokens::new(vec![Arc::new(tokens)], Some(cache))],
        audiences: own,
        ..Authentication::default()
    }
}

fn bench(c: &mut Criterion) {
    let mut headers = HeaderMap::new();
    let value = HeaderValue::from_str(&format!("Bearer {}", "t".repeat(LENGTH))).unwrap();
    headers.insert(AUTHORIZATION, value);
    for (name, remember_ms) in [("token, remembered", 3_600_000), ("token, looked at", 0)] {
        let authentication = authentication(remember_ms);
        let credentials = Credentials {
            headers: &headers,
            connection: None,
            path: "/api",
            audiences: &authentication.audiences,
        };
        c.bench_function(name, |b| {
            b.iter(|| {
                let identity = authentication.authenticate(black_box(&credentials)).now_or_never();
                identity.unwrap().unwrap()
            });
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
