//! The query and path parameters of operations.
//!
//! OpenAPI v2 keeps parameters that many operations share in one table, under the name and a hash of what
//! kube-apiserver says there; generated clients carry these names, so they are kept as they are.

/// Where a parameter stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Location {
    Query,
    Path,
}

impl Location {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Location::Query => "query",
            Location::Path => "path",
        }
    }
}

/// One parameter.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) location: Location,
    /// JSON type: string, boolean or integer.
    pub(super) ty: &'static str,
    /// Key in the table of shared parameters of v2; empty: written in place.
    pub(super) shared: &'static str,
    pub(super) description: &'static str,
}

const fn query(name: &'static str, ty: &'static str, shared: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        location: Location::Query,
        ty,
        shared,
        description,
    }
}

const fn path(name: &'static str, shared: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        location: Location::Path,
        ty: "string",
        shared,
        description,
    }
}

pub(super) static NAME: Parameter = path("name", "", "Name of the object.");
pub(super) static NAMESPACE: Parameter = path("namespace", "namespace-vgWSWtn3", "Namespace of the object.");
pub(super) static PRETTY: Parameter = query(
    "pretty",
    "string",
    "pretty-tJGM1-ng",
    "true: JSON is indented. Default: false, unless a browser asks.",
);
static ALLOW_WATCH_BOOKMARKS: Parameter = query(
    "allowWatchBookmarks",
    "boolean",
    "allowWatchBookmarks-HC2hJt-J",
    "A watch may send BOOKMARK events, which carry nothing but a resource version.",
);
static CONTINUE: Parameter = query(
    "continue",
    "string",
    "continue-QfD61s0i",
    "Goes on with a list at the place that metadata.continue of its last part named.",
);
static DRY_RUN: Parameter = query(
    "dryRun",
    "string",
    "",
    "All: the request is checked in every stage, but nothing is stored.",
);
static FIELD_MANAGER: Parameter = query(
    "fieldManager",
    "string",
    "fieldManager-Qy4HdaTW",
    "Who makes the change; at most 128 printable characters. Default: the beginning of User-Agent.",
);
static FIELD_MANAGER_OF_PATCH: Parameter = query(
    "fieldManager",
    "string",
    "fieldManager-7c6nTn1T",
    "Who makes the change; at most 128 printable characters. An apply patch must have it.",
);
static FIELD_SELECTOR: Parameter = query(
    "fieldSelector",
    "string",
    "fieldSelector-xIcQKXFG",
    "Only objects whose fields match.",
);
static FIELD_VALIDATION: Parameter = query(
    "fieldValidation",
    "string",
    "",
    "What to do with unknown and duplicate fields: Ignore, Warn (default) or Strict.",
);
static FORCE: Parameter = query(
    "force",
    "boolean",
    "force-tOGGb0Yi",
    "An apply patch takes over fields that others own.",
);
static GRACE_PERIOD_SECONDS: Parameter = query(
    "gracePeriodSeconds",
    "integer",
    "gracePeriodSeconds--K5HaBOS",
    "Seconds until the object is gone; 0: at once. Default: the kind's own.",
);
static IGNORE_STORE_READ_ERROR: Parameter = query(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "ignoreStoreReadErrorWithClusterBreakingPotential-QbNkfIqj",
    "Deletes an object that cannot be read from the store any more, without finalizers or checks.",
);
static LABEL_SELECTOR: Parameter = query(
    "labelSelector",
    "string",
    "labelSelector-5Zw57w4C",
    "Only objects whose labels match.",
);
static LIMIT: Parameter = query(
    "limit",
    "integer",
    "limit-1NfNmdNH",
    "The most objects that one answer holds.",
);
static ORPHAN_DEPENDENTS: Parameter = query(
    "orphanDependents",
    "boolean",
    "orphanDependents-uRB25kX5",
    "Deprecated; use propagationPolicy. Whether dependents stay.",
);
static PROPAGATION_POLICY: Parameter = query(
    "propagationPolicy",
    "string",
    "propagationPolicy-6jk3prlO",
    "What becomes of dependents: Orphan, Background or Foreground.",
);
static RESOURCE_VERSION: Parameter = query(
    "resourceVersion",
    "string",
    "resourceVersion-5WAnf1kx",
    "The resource version from which the answer may or must be served.",
);
static RESOURCE_VERSION_MATCH: Parameter = query(
    "resourceVersionMatch",
    "string",
    "resourceVersionMatch-t8XhRHeC",
    "How resourceVersion is meant: NotOlderThan or Exact.",
);
static SEND_INITIAL_EVENTS: Parameter = query(
    "sendInitialEvents",
    "boolean",
    "sendInitialEvents-rLXlEK_k",
    "A watch begins with the objects that exist, and a bookmark after them.",
);
static SHARD_SELECTOR: Parameter = query(
    "shardSelector",
    "string",
    "shardSelector-Kgyki_3_",
    "Only the objects of one shard.",
);
static TIMEOUT_SECONDS: Parameter = query(
    "timeoutSeconds",
    "integer",
    "timeoutSeconds-yvYezaOC",
    "Seconds after which the request ends.",
);
static WATCH: Parameter = query(
    "watch",
    "boolean",
    "watch-XNNPZGbK",
    "Changes as they happen instead of a list; begins at resourceVersion.",
);

/// Of lists and watches.
pub(super) static LIST: &[&Parameter] = &[
    &ALLOW_WATCH_BOOKMARKS,
    &CONTINUE,
    &FIELD_SELECTOR,
    &LABEL_SELECTOR,
    &LIMIT,
    &RESOURCE_VERSION,
    &RESOURCE_VERSION_MATCH,
    &SEND_INITIAL_EVENTS,
    &SHARD_SELECTOR,
    &TIMEOUT_SECONDS,
    &WATCH,
];
/// Of POST and PUT.
pub(super) static WRITE: &[&Parameter] = &[&DRY_RUN, &FIELD_MANAGER, &FIELD_VALIDATION];
pub(super) static PATCH: &[&Parameter] = &[&DRY_RUN, &FIELD_MANAGER_OF_PATCH, &FIELD_VALIDATION, &FORCE];
pub(super) static DELETE: &[&Parameter] = &[
    &DRY_RUN,
    &GRACE_PERIOD_SECONDS,
    &IGNORE_STORE_READ_ERROR,
    &ORPHAN_DEPENDENTS,
    &PROPAGATION_POLICY,
];
pub(super) static DELETE_COLLECTION: &[&Parameter] = &[
    &CONTINUE,
    &DRY_RUN,
    &FIELD_SELECTOR,
    &GRACE_PERIOD_SECONDS,
    &IGNORE_STORE_READ_ERROR,
    &LABEL_SELECTOR,
    &LIMIT,
    &ORPHAN_DEPENDENTS,
    &PROPAGATION_POLICY,
    &RESOURCE_VERSION,
    &RESOURCE_VERSION_MATCH,
    &SEND_INITIAL_EVENTS,
    &SHARD_SELECTOR,
    &TIMEOUT_SECONDS,
];
