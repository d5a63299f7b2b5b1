//! Requests: how many, how they ended, how long they took; by what they asked for, in words of the scheme, so that
//! there are as many series as it has routes. What is no route of resources, health or OpenAPI is not counted.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use actix_web::http::header;
use keelson_access::request_info::RequestInfo;
use keelson_machinery::reflect::Name;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::request::Request;

/// A label that a definition says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Label(Name);

impl From<&'static str> for Label {
    fn from(text: &'static str) -> Label {
        Label(Name::new_static(text))
    }
}

impl EncodeLabelValue for Label {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> std::fmt::Result {
        self.0.as_str().encode(encoder)
    }
}

/// What a request asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    component: &'static str,
    group: Label,
    resource: Label,
    scope: &'static str,
    subresource: Label,
    verb: &'static str,
    version: Label,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Terminated {
    code: u16,
    #[prometheus(flatten)]
    route: Route,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Timed {
    dry_run: &'static str,
    #[prometheus(flatten)]
    route: Route,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Counted {
    code: u16,
    #[prometheus(flatten)]
    timed: Timed,
}

/// The series of one sort of request.
struct Series {
    total: Counter,
    /// `None` of watches, which last as long as their clients like.
    durations: Option<[Histogram; 2]>,
}

/// Upper bounds of the time that requests take, in seconds; objectives leave out the first two.
const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

fn durations() -> Histogram {
    Histogram::new(BUCKETS)
}

fn objectives() -> Histogram {
    Histogram::new(BUCKETS.into_iter().skip(2))
}

/// Counts requests.
pub struct RequestMetrics {
    total: Family<Counted, Counter>,
    durations: Family<Timed, Histogram>,
    objectives: Family<Route, Histogram>,
    terminations: Family<Terminated, Counter>,
    long_running: Family<Route, Gauge>,
    /// What was found in the families: one look for each request.
    known: RwLock<HashMap<Counted, Series>>,
}

/// Counts a stream as long as it lives.
pub struct LongRunning(Gauge);

impl Drop for LongRunning {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl RequestMetrics {
    pub(super) fn new(registry: &mut Registry) -> RequestMetrics {
        let metrics = RequestMetrics {
            total: Family::default(),
            durations: Family::new_with_constructor(durations),
            objectives: Family::new_with_constructor(objectives),
            terminations: Family::default(),
            long_running: Family::default(),
            known: RwLock::default(),
        };
        let text = "Requests by what they asked for and how they ended";
        registry.register("apiserver_request", text, metrics.total.clone());
        let text = "Seconds from the start of a request to its answer";
        registry.register("apiserver_request_duration_seconds", text, metrics.durations.clone());
        let text = "Those seconds, as objectives for the server are set in them";
        let name = "apiserver_request_sli_duration_seconds";
        registry.register(name, text, metrics.objectives.clone());
        let text = "Requests that were turned away, or whose time was over";
        registry.register("apiserver_request_terminations", text, metrics.terminations.clone());
        let text = "Watches and other streams that are open";
        registry.register("apiserver_longrunning_requests", text, metrics.long_running.clone());
        metrics
    }

    /// Counts an answered request.
    pub(crate) fn observe(&self, request: &Request, code: u16, took: Duration) {
        let Some(route) = Route::of(request) else {
            return;
        };
        let dry_run = dry_run(request);
        let labels = Counted {
            code,
            timed: Timed { dry_run, route },
        };
        if let Some(series) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&labels) {
            return series.observe(took);
        }
        let series = self.find(&labels);
        series.observe(took);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(labels, series);
    }

    fn find(&self, labels: &Counted) -> Series {
        let timed = &labels.timed;
        let durations = || {
            [
                self.durations.get_or_create_owned(timed),
                self.objectives.get_or_create_owned(&timed.route),
            ]
        };
        Series {
            total: self.total.get_or_create_owned(labels),
            durations: (timed.route.verb != WATCH).then(durations),
        }
    }

    /// Counts a request that no handler has answered.
    pub(crate) fn terminated(&self, request: &Request, code: u16) {
        if let Some(route) = Route::of(request) {
            self.terminations.get_or_create(&Terminated { code, route }).inc();
        }
    }

    /// Forgets the series of resources that are not served any more.
    pub(crate) fn retain(&self, is_served: impl Fn(&str, &str, &str) -> bool) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let gone = known.extract_if(|labels, _| {
            let Route {
                component,
                group,
                version,
                resource,
                ..
            } = &labels.timed.route;
            !component.is_empty() && !is_served(&group.0, &version.0, &resource.0)
        });
        for (labels, _) in gone {
            self.total.remove(&labels);
            self.durations.remove(&labels.timed);
            let route = labels.timed.route;
            for code in TERMINATIONS {
                let route = route.clone();
                self.terminations.remove(&Terminated { code, route });
            }
            self.objectives.remove(&route);
            self.long_running.remove(&route);
        }
    }

    /// Counts a stream until what is returned is dropped.
    pub(crate) fn open(&self, request: &Request) -> Option<LongRunning> {
        let open = self.long_running.get_or_create_owned(&Route::of(request)?);
        open.inc();
        Some(LongRunning(open))
    }
}

impl Series {
    fn observe(&self, took: Duration) {
        self.total.inc();
        for histogram in self.durations.iter().flatten() {
            histogram.observe(took.as_secs_f64());
        }
    }
}

/// The codes of requests that no handler answers.
const TERMINATIONS: [u16; 2] = [429, 504];
const WATCH: &str = "WATCH";
const CONNECT: &str = "CONNECT";

impl Route {
    fn of(request: &Request) -> Option<Route> {
        let info = &request.info;
        let Some(endpoint) = request.endpoint() else {
            return Some(Route {
                component: "",
                group: "".into(),
                resource: "".into(),
                scope: "",
                subresource: known_path(&info.path)?.into(),
                verb: verb(request),
                version: "".into(),
            });
        };
        let kind = &endpoint.kind;
        Some(Route {
            component: "apiserver",
            group: Label(kind.group.clone()),
            resource: Label(kind.plural.clone()),
            scope: scope(info),
            subresource: match info.subresource.as_str() {
                "" => "".into(),
                name => Label(endpoint.subresource(name)?.name.clone()),
            },
            verb: verb(request),
            version: Label(kind.version.clone()),
        })
    }
}

/// Paths that are no resources, as they are called where they are counted.
fn known_path(path: &str) -> Option<&'static str> {
    const EXACT: [&str; 3] = ["/healthz", "/livez", "/readyz"];
    match path.strip_prefix("/openapi/v3") {
        Some("") => Some("openapi/v3"),
        Some(rest) if rest.starts_with('/') => Some("openapi/v3/"),
        _ => EXACT.into_iter().find(|known| *known == path),
    }
}

/// One object, those of a namespace, or all.
fn scope(info: &RequestInfo) -> &'static str {
    match (info.verb.as_str(), info.name.as_str(), info.namespace.as_str()) {
        ("create", ..) => "resource",
        (_, "", "") => "cluster",
        (_, "", _) => "namespace",
        _ => "resource",
    }
}

fn verb(request: &Request) -> &'static str {
    let info = &request.info;
    match info.verb.as_str() {
        "watch" => WATCH,
        _ if info.is_resource && info.is_long_running() => CONNECT,
        "get" => "GET",
        "list" => "LIST",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" if is_apply(request) => "APPLY",
        "patch" => "PATCH",
        "delete" | "deletecollection" => "DELETE",
        _ => "OTHER",
    }
}

fn is_apply(request: &Request) -> bool {
    let media_type = request.header(&header::CONTENT_TYPE).unwrap_or_default();
    media_type.starts_with("application/apply-patch+")
}

/// Whether a write is only tried.
fn dry_run(request: &Request) -> &'static str {
    if request.query.is_empty() || matches!(request.info.verb.as_str(), "get" | "list" | "watch") {
        return "";
    }
    match request.query.has("dryRun") {
        false => "",
        true if request.query.all("dryRun").all(|one| one == "All") => "All",
        true => "invalid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::tests::request;

    #[test]
    fn requests_are_called_as_kube_apiserver_calls_them() {
        let (apply, merge) = ("application/apply-patch+yaml", "application/merge-patch+json");
        for (method, target, media_type, expected) in [
            ("GET", "/api/v1/namespaces/n/pods", "", ("LIST", "namespace", "")),
            ("GET", "/api/v1/pods", "", ("LIST", "cluster", "")),
            ("GET", "/api/v1/pods?watch=1", "", ("WATCH", "cluster", "")),
            (
                "GET",
                "/api/v1/pods?fieldSelector=metadata.name%3Dx",
                "",
                ("LIST", "resource", ""),
            ),
            ("POST", "/api/v1/namespaces/n/pods", "", ("POST", "resource", "")),
            (
                "DELETE",
                "/api/v1/namespaces/n/pods?dryRun=All",
                "",
                ("DELETE", "namespace", "All"),
            ),
            (
                "PATCH",
                "/api/v1/namespaces/n/pods/p?dryRun=x",
                merge,
                ("PATCH", "resource", "invalid"),
            ),
            ("PATCH", "/api/v1/namespaces/n/pods/p", apply, ("APPLY", "resource", "")),
            (
                "GET",
                "/api/v1/namespaces/n/pods/p/log",
                "",
                ("CONNECT", "resource", ""),
            ),
        ] {
            let request = request(method, target, &[("content-type", media_type)]);
            let found = (verb(&request), scope(&request.info), dry_run(&request));
            assert_eq!(found, expected, "{method} {target}");
        }
    }

    #[test]
    fn few_paths_are_counted() {
        for (path, name) in [
            ("/livez", Some("/livez")),
            ("/livez/ping", None),
            ("/openapi/v3", Some("openapi/v3")),
            ("/openapi/v3/apis/apps/v1", Some("openapi/v3/")),
            ("/openapi/v2", None),
            ("/anything", None),
        ] {
            assert_eq!(known_path(path), name, "{path}");
        }
    }
}
