//! `/healthz`, `/livez`, `/readyz`, whole and check by check.

use std::time::Duration;

use actix_web::HttpResponse;
use keelson_access::request_info::Query;
use keelson_net::listener::Phase;
use keelson_storage::encryption::UnhealthyService;
use keelson_storage::{Store, StoreError};

use crate::lifecycle::HookState;
use crate::metrics::HealthIndicators;
use crate::respond;
use crate::state::ServerState;

/// One check and its outcome.
struct Check {
    name: String,
    result: Result<(), Ill>,
}

/// Why a check fails. Clients are told only that it does; the log says why.
#[derive(Debug, thiserror::Error)]
enum Ill {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("no answer within {0:?}")]
    Mute(Duration),
    #[error(transparent)]
    Encryption(#[from] UnhealthyService),
    #[error("not finished")]
    Unfinished,
    #[error("{0}")]
    Hook(String),
    #[error("process is shutting down")]
    Ending,
}

/// The endpoint that a health path is of, and the check that it names.
fn split(path: &str) -> Option<(&'static str, Option<&str>)> {
    let mut parts = path.strip_prefix('/')?.splitn(2, '/');
    let named = parts.next()?;
    let endpoint = ["healthz", "livez", "readyz"]
        .into_iter()
        .find(|known| *known == named)?;
    Some((endpoint, parts.next()))
}

/// Whether this path is answered here.
pub fn is_endpoint(path: &str) -> bool {
    split(path).is_some()
}

/// Serves a health path; `None` for a path that is none.
pub async fn serve(state: &ServerState, path: &str, query: &Query) -> Option<HttpResponse> {
    let (endpoint, named) = split(path)?;
    let checks = checks(state, endpoint).await;
    Some(match named {
        None => whole(endpoint, checks, query, &state.indicators),
        Some(name) => single(checks.into_iter().find(|c| c.name == name)),
    })
}

async fn checks(state: &ServerState, endpoint: &str) -> Vec<Check> {
    let ok = |name: &str| Check {
        name: name.into(),
        result: Ok(()),
    };
    let mut checks = vec![ok("ping"), ok("log")];
    checks.extend(stores(state, endpoint).await);
    let encryption = &state.rest.backend.encryption;
    // A service that is ill is no reason to start this server anew.
    if endpoint != "livez" && encryption.has_services() {
        checks.push(Check {
            name: "kms-providers".into(),
            result: encryption.health().await.map_err(Ill::Encryption),
        });
    }
    if endpoint == "readyz" {
        checks.push(Check {
            name: "informer-sync".into(),
            result: informers(state),
        });
    }
    let tolerant = endpoint == "livez" && state.started.elapsed() < state.requests.livez_grace;
    for (name, hook) in state.hooks.states() {
        let result = match hook {
            HookState::Done => Ok(()),
            HookState::Running if tolerant => Ok(()),
            HookState::Running => Err(Ill::Unfinished),
            HookState::Failed(error) => Err(Ill::Hook(error)),
        };
        checks.push(Check {
            name: format!("poststarthook/{name}"),
            result,
        });
    }
    if endpoint == "readyz" {
        let stopping = state.rest.shutdown.phase() > Phase::Serving;
        let result = if stopping { Err(Ill::Ending) } else { Ok(()) };
        checks.push(Check {
            name: "shutdown".into(),
            result,
        });
    }
    checks
}

/// Whether everything that follows objects has seen all that there were at the start.
fn informers(state: &ServerState) -> Result<(), Ill> {
    let begins = |name: &str| name.ends_with("-informers") || name.ends_with("-informer-synced");
    let mut hooks = state.hooks.states().into_iter().filter(|(name, _)| begins(name));
    match hooks.all(|(_, hook)| matches!(hook, HookState::Done)) {
        true => Ok(()),
        false => Err(Ill::Unfinished),
    }
}

/// Whether the stores can be written to: `etcd`, and to take requests `etcd-readiness`.
async fn stores(state: &ServerState, endpoint: &str) -> Vec<Check> {
    let backend = &state.rest.backend;
    let placement = &backend.placement;
    let mut checks = Vec::new();
    for (n, store) in backend.stores().enumerate() {
        let of = match n {
            0 => "etcd".to_owned(),
            n => format!("etcd-override-{}", n - 1),
        };
        checks.push(store_check(of, &**store, placement.health_timeout).await);
        if endpoint == "readyz" {
            let of = match n {
                0 => "etcd-readiness".to_owned(),
                n => format!("etcd-override-readiness-{}", n - 1),
            };
            checks.push(store_check(of, &**store, placement.ready_timeout).await);
        }
    }
    checks
}

async fn store_check(name: String, store: &dyn Store, limit: Duration) -> Check {
    let result = match tokio::time::timeout(limit, store.health()).await {
        Ok(health) => health.map_err(Ill::Store),
        Err(_) => Err(Ill::Mute(limit)),
    };
    Check { name, result }
}

fn whole(endpoint: &'static str, checks: Vec<Check>, query: &Query, indicators: &HealthIndicators) -> HttpResponse {
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut text = String::new();
    let mut failed = false;
    for check in &checks {
        let name = &check.name;
        if !excluded.contains(&name.as_str()) {
            indicators.observe(name, endpoint, check.result.is_ok());
        }
        match &check.result {
            _ if excluded.contains(&name.as_str()) => text.push_str(&format!("[+]{name} excluded: ok\n")),
            Ok(()) => text.push_str(&format!("[+]{name} ok\n")),
            Err(error) => {
                failed = true;
                tracing::warn!(endpoint, check = name, %error, "a health check failed");
                text.push_str(&format!("[-]{name} failed: reason withheld\n"));
            }
        }
    }
    let unknown: Vec<&&str> = excluded
        .iter()
        .filter(|e| !checks.iter().any(|c| c.name == **e))
        .collect();
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|n| format!("{n:?}")).collect();
        text.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            names.join(",")
        ));
    }
    if failed {
        return respond::text(500, format!("{text}{endpoint} check failed\n"));
    }
    if query.has("verbose") {
        return respond::text(200, format!("{text}{endpoint} check passed\n"));
    }
    respond::text(200, "ok")
}

fn single(check: Option<Check>) -> HttpResponse {
    match check.map(|c| c.result) {
        Some(Ok(())) => respond::text(200, "ok"),
        Some(Err(error)) => respond::text(500, format!("internal server error: {error}\n")),
        None => respond::page_not_found(),
    }
}
