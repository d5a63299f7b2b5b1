//! Request info, read off method, path and query: the attributes that authorization, audit and the REST handlers share.
//! The rules are kube-apiserver's `RequestInfo`.

use keelson_machinery::selector::field::Term;
use keelson_machinery::selector::label::Requirement;
use keelson_machinery::selector::{FieldSelector, LabelSelector};

/// The attributes of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The path is below `/api/<version>/` or `/apis/<group>/<version>/` and names a resource.
    pub is_resource: bool,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, `proxy`; of other paths the
    /// method in lower case.
    pub verb: String,
    pub path: String,
    /// `api` or `apis`.
    pub prefix: String,
    pub group: String,
    pub version: String,
    /// Empty for cluster-scoped requests and lists over all namespaces.
    pub namespace: String,
    pub resource: String,
    pub subresource: String,
    pub name: String,
    /// The name is one that a field selector implies; the path has none.
    pub name_selected: bool,
    /// What stands after the subresource, joined by slashes.
    pub rest: String,
    /// The path has the form `/…/watch/…` of old.
    pub legacy_watch: bool,
    /// The path has a part that is empty or follows more parts than the resource has.
    pub malformed: bool,
    /// The resource stands below a namespace in the path.
    pub in_namespace: bool,
    /// The path has more slashes than its prefix allows: authorization reads it as a resource, no route leads there.
    pub unrouted: bool,
    /// The field selector of a `list`, `watch` or `deletecollection`, as far as it can be read.
    pub fields: Vec<Term>,
    /// The label selector, likewise.
    pub labels: Vec<Requirement>,
}

/// Subresources of a namespace, which would else read as resources in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

impl RequestInfo {
    /// Reads the attributes. `path` is decoded; `query` is looked up for `watch` and for a field selector that names
    /// one object. `None`: the path ends after `watch` or `proxy`.
    pub fn parse(method: &str, path: &str, query: &Query) -> Option<RequestInfo> {
        let mut info = RequestInfo {
            path: path.to_owned(),
            verb: method.to_ascii_lowercase(),
            unrouted: path.starts_with("//"),
            ..RequestInfo::default()
        };
        let trimmed = path.trim_matches('/');
        let mut parts: Vec<&str> = if trimmed.is_empty() {
            Vec::new()
        } else {
            trimmed.split('/').collect()
        };
        if !info.take_group_version(&mut parts) {
            return Some(info);
        }
        info.is_resource = true;
        info.unrouted |= info.prefix == "apis" && info.group.is_empty();
        info.malformed = parts.iter().any(|p| p.is_empty());
        info.verb = verb_of(method).to_owned();
        if matches!(parts[0], "watch" | "proxy") {
            if parts.len() == 1 {
                return None;
            }
            info.legacy_watch = parts[0] == "watch";
            info.verb = parts[0].to_owned();
            parts.remove(0);
        }
        info.take_resource(&parts);
        info.refine_verb(query);
        Some(info)
    }

    /// `["api", "v1", …]` or `["apis", group, version, …]`; false where nothing follows, and there is no resource path.
    fn take_group_version(&mut self, parts: &mut Vec<&str>) -> bool {
        let used = match parts.first().copied() {
            Some("api") if parts.len() >= 3 => {
                self.version = parts[1].to_owned();
                2
            }
            Some("apis") if parts.len() >= 4 => {
                self.group = parts[1].to_owned();
                self.version = parts[2].to_owned();
                3
            }
            _ => return false,
        };
        self.prefix = parts[0].to_owned();
        parts.drain(..used);
        true
    }

    fn take_resource(&mut self, parts: &[&str]) {
        let mut parts = parts;
        if parts[0] == "namespaces" && parts.len() > 1 {
            self.namespace = parts[1].to_owned();
            if parts.len() > 2 && !NAMESPACE_SUBRESOURCES.contains(&parts[2]) {
                parts = &parts[2..];
                self.in_namespace = true;
            }
        }
        let part = |i: usize| parts.get(i).copied().unwrap_or_default().to_owned();
        self.resource = part(0);
        self.name = part(1);
        self.subresource = part(2);
        self.rest = parts.get(3..).unwrap_or_default().join("/");
    }

    /// A `get` without a name lists or watches; a `delete` without one deletes the collection. A field selector on
    /// `metadata.name` names the object, so that rules on names apply to such lists and watches, unless there is an
    /// option that can't be read. What narrows down a request for several objects counts too: who may read only some of
    /// them says so here. The old paths of watches know no selectors that decide.
    fn refine_verb(&mut self, query: &Query) {
        let is_get = self.name.is_empty() && self.verb == "get";
        if is_get {
            self.verb = if query.flag("watch") { "watch" } else { "list" }.to_owned();
        }
        if self.name.is_empty() && self.verb == "delete" {
            self.verb = "deletecollection".to_owned();
        }
        if self.legacy_watch || !matches!(self.verb.as_str(), "list" | "watch" | "deletecollection") {
            return;
        }
        let given = |name: &str| query.get(name).filter(|text| !text.is_empty());
        let fields = given("fieldSelector").map(FieldSelector::parse).transpose();
        let labels = given("labelSelector").map(LabelSelector::parse).transpose();
        if is_get
            && let (Ok(Some(fields)), Ok(_), true) = (&fields, &labels, has_numbers(query))
            && let Some(name) = fields.required_value("metadata.name").filter(|name| may_be_name(name))
        {
            self.name = name.to_owned();
            self.name_selected = true;
        }
        self.fields = fields.ok().flatten().map(|s| s.terms().to_vec()).unwrap_or_default();
        self.labels = labels
            .ok()
            .flatten()
            .map(|s| s.requirements().to_vec())
            .unwrap_or_default();
    }

    /// Whether the request may go on for as long as its client likes: no timeout ends it.
    pub fn is_long_running(&self) -> bool {
        const STREAMS: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];
        match self.is_resource {
            true => matches!(self.verb.as_str(), "watch" | "proxy") || STREAMS.contains(&self.subresource.as_str()),
            false => self.path.starts_with("/debug/pprof/"),
        }
    }

    /// The name that the path gives, not one that a field selector implies.
    pub fn path_name(&self) -> &str {
        if self.name_selected { "" } else { &self.name }
    }
}

/// Whether the options that are numbers are some.
fn has_numbers(query: &Query) -> bool {
    let given = ["limit", "timeoutSeconds"]
        .into_iter()
        .filter_map(|name| query.get(name));
    given.into_iter().all(|text| text.parse::<i64>().is_ok())
}

/// Whether a text can be a segment of a path, as names are.
fn may_be_name(text: &str) -> bool {
    !text.is_empty() && !matches!(text, "." | "..") && !text.contains(['/', '%'])
}

fn verb_of(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

/// The query of a request, decoded, in order. A pair with a broken escape is dropped, as Go drops it.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub fn parse(text: &str) -> Query {
        let pairs = text
            .split('&')
            .filter(|p| !p.is_empty() && !p.contains(';'))
            .filter_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((unescape(key)?, unescape(value)?))
            })
            .collect();
        Query { pairs }
    }

    /// The first value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs
            .iter()
            .filter(move |(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Go's conversion of a query parameter to bool: any value but `false` in any case and `0` is true, also the empty
    /// one.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|v| !v.eq_ignore_ascii_case("false") && v != "0")
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

/// The path with its escapes decoded; `None` if one of them is broken.
pub fn decode_path(path: &str) -> Option<String> {
    if !path.contains('%') {
        return Some(path.to_owned());
    }
    decode(path, false)
}

fn unescape(text: &str) -> Option<String> {
    decode(text, true)
}

fn decode(text: &str, plus_is_blank: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'+' if plus_is_blank => out.push(b' '),
            b'%' => {
                let digit = |b: Option<u8>| b.and_then(|b| (b as char).to_digit(16));
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                out.push(u8::try_from(high * 16 + low).ok()?);
            }
            b => out.push(b),
        }
    }
    Some(match String::from_utf8(out) {
        Ok(s) => s,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: &str, url: &str) -> [String; 7] {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let i = RequestInfo::parse(method, path, &Query::parse(query)).unwrap();
        [
            i.verb,
            i.group,
            i.version,
            i.namespace,
            i.resource,
            i.subresource,
            i.name,
        ]
    }

    #[test]
    fn paths_and_methods_become_attributes() {
        let cases = [
            (
                "GET",
                "/api/v1/namespaces",
                ["list", "", "v1", "", "namespaces", "", ""],
            ),
            (
                "GET",
                "/api/v1/namespaces/a",
                ["get", "", "v1", "a", "namespaces", "", "a"],
            ),
            (
                "PUT",
                "/api/v1/namespaces/a/status",
                ["update", "", "v1", "a", "namespaces", "status", "a"],
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods/p/log",
                ["get", "", "v1", "a", "pods", "log", "p"],
            ),
            (
                "GET",
                "/apis/apps/v1/deployments?watch=",
                ["watch", "apps", "v1", "", "deployments", "", ""],
            ),
            (
                "GET",
                "/apis/apps/v1/deployments?watch=0",
                ["list", "apps", "v1", "", "deployments", "", ""],
            ),
            (
                "DELETE",
                "/apis/apps/v1/namespaces/n/deployments",
                ["deletecollection", "apps", "v1", "n", "deployments", "", ""],
            ),
            (
                "GET",
                "/api/v1/pods?fieldSelector=metadata.name%3Dx",
                ["list", "", "v1", "", "pods", "", "x"],
            ),
            (
                "GET",
                "/api/v1/watch/namespaces/n/pods/p",
                ["watch", "", "v1", "n", "pods", "", "p"],
            ),
        ];
        for (method, url, want) in cases {
            assert_eq!(row(method, url), want.map(str::to_owned), "{method} {url}");
        }
    }

    #[test]
    fn selectors_of_collections_are_attributes() {
        let query = Query::parse("fieldSelector=spec.nodeName%3Da&labelSelector=b%21%3Dc");
        let info = RequestInfo::parse("GET", "/api/v1/pods", &query).unwrap();
        assert_eq!(
            (info.fields[0].field.as_str(), info.fields[0].value.as_str()),
            ("spec.nodeName", "a")
        );
        assert_eq!(info.labels[0].key(), "b");
        let one = RequestInfo::parse("GET", "/api/v1/namespaces/n/pods/p", &query).unwrap();
        assert!(one.fields.is_empty() && one.labels.is_empty());
        let odd = Query::parse("fieldSelector=%3D%3D&labelSelector=%21%21");
        let info = RequestInfo::parse("GET", "/api/v1/pods", &odd).unwrap();
        assert!(info.labels.is_empty());
    }

    #[test]
    fn names_that_are_selected_are_those_of_the_first_term_as_they_stand() {
        let name = |url: &str| row("GET", url)[6].clone();
        for (query, expected) in [
            ("fieldSelector=metadata.name%3Dx", "x"),
            ("fieldSelector=metadata.name%3D%3Dx", "x"),
            ("fieldSelector=metadata.name%3Dx%20", "x "),
            ("fieldSelector=metadata.name%3Dx%0A", "x\n"),
            ("fieldSelector=%20metadata.name%3Dx", ""),
            ("fieldSelector=metadata.name%3Dy,metadata.name%3Dx", "x"),
            ("fieldSelector=metadata.name%3D%3Dy,metadata.name%3Dx", "y"),
            ("fieldSelector=metadata.name!%3Dx", ""),
            ("fieldSelector=metadata.name%3Da%25b", ""),
            ("fieldSelector=metadata.name%3Da%2Fb", ""),
            ("fieldSelector=metadata.name%3D..", ""),
            ("fieldSelector=metadata.name%3Dx,a", ""),
            ("fieldSelector=metadata.name%3Dx&fieldSelector=metadata.name%3Dy", "x"),
            ("fieldSelector=metadata.name%3Dx&limit=abc", ""),
            ("fieldSelector=metadata.name%3Dx&limit=", ""),
            ("fieldSelector=metadata.name%3Dx&limit=7", "x"),
            ("fieldSelector=metadata.name%3Dx&timeoutSeconds=1s", ""),
            ("fieldSelector=metadata.name%3Dx&labelSelector=!!", ""),
            ("fieldSelector=metadata.name%3Dx&labelSelector=a", "x"),
        ] {
            assert_eq!(name(&format!("/api/v1/pods?{query}")), expected, "{query}");
            assert_eq!(name(&format!("/api/v1/pods?watch=1&{query}")), expected, "{query}");
        }
        assert_eq!(row("DELETE", "/api/v1/pods?fieldSelector=metadata.name%3Dx")[6], "");
    }

    #[test]
    fn old_watch_paths_have_no_selectors_that_decide() {
        let query = Query::parse("fieldSelector=metadata.name%3Dx&labelSelector=a");
        let info = RequestInfo::parse("GET", "/api/v1/watch/pods", &query).unwrap();
        assert_eq!((info.verb.as_str(), info.name.as_str()), ("watch", ""));
        assert!(info.fields.is_empty() && info.labels.is_empty());
    }

    #[test]
    fn other_paths_are_no_resources() {
        for path in ["/", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/healthz"] {
            let info = RequestInfo::parse("GET", path, &Query::default()).unwrap();
            assert!(
                !info.is_resource && info.group.is_empty() && info.version.is_empty(),
                "{path}"
            );
        }
    }

    #[test]
    fn watch_and_proxy_need_a_resource() {
        for path in ["/api/v1/watch", "/apis/apps/v1/watch/", "/api/v1/proxy"] {
            assert_eq!(RequestInfo::parse("GET", path, &Query::default()), None, "{path}");
        }
    }

    #[test]
    fn surplus_slashes_lead_nowhere() {
        for (path, unrouted) in [
            ("//api/v1/pods", true),
            ("/apis//v1/pods", true),
            ("/api/v1/pods/", false),
        ] {
            let info = RequestInfo::parse("GET", path, &Query::default()).unwrap();
            assert_eq!((info.is_resource, info.unrouted), (true, unrouted), "{path}");
        }
    }

    #[test]
    fn flags_are_true_but_for_two_values() {
        for (text, expected) in [
            ("watch", true),
            ("watch=", true),
            ("watch=no", true),
            ("watch=FALSE", false),
            ("watch=0", false),
            ("", false),
        ] {
            assert_eq!(Query::parse(text).flag("watch"), expected, "{text}");
        }
    }

    #[test]
    fn escapes_in_paths_are_decoded_once() {
        assert_eq!(decode_path("/a%2Fb+%2541").as_deref(), Some("/a/b+%41"));
        assert_eq!(decode_path("/a%zz"), None);
    }

    #[test]
    fn broken_escapes_drop_the_parameter() {
        let q = Query::parse("a=%zz&b=1+2&c&d=x%2Cy");
        assert_eq!(
            (q.get("a"), q.get("b"), q.get("c"), q.get("d")),
            (None, Some("1 2"), Some(""), Some("x,y"))
        );
    }
}
