//! The query and path parameters of operations.
//!
//! OpenAPI v2 keeps parameters that many operations share in one table, under the name and a hash of what
//! kube-apiserver says there; generated clients carry these names, so they are kept as they are.

use keelson_machinery::reflect::{FieldDesc, MessageDesc, Name, Type};

/// Where a parameter stands; of two with one name, that in the path comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Location {
    Path,
    Query,
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Parameter {
    pub(super) name: Name,
    pub(super) location: Location,
    /// JSON type: string, boolean, integer or number.
    pub(super) ty: &'static str,
    /// Key in the table of shared parameters of v2; empty: written in place.
    pub(super) shared: &'static str,
    /// May be empty.
    pub(super) description: &'static str,
}

const fn query(name: &'static str, ty: &'static str, shared: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name: Name::new_static(name),
        location: Location::Query,
        ty,
        shared,
        description,
    }
}

const fn path(name: &'static str, shared: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name: Name::new_static(name),
        location: Location::Path,
        ty: "string",
        shared,
        description,
    }
}

pub(super) const NAME: Parameter = path("name", "", "Name of the object.");
pub(super) const NAMESPACE: Parameter = path("namespace", "namespace-vgWSWtn3", "Namespace of the object.");
/// What follows a subresource whose requests pass through.
pub(super) const SUBPATH: Parameter = path("path", "path-z6Ciiujn", "The path to pass on.");
pub(super) const PRETTY: Parameter = query(
    "pretty",
    "string",
    "pretty-tJGM1-ng",
    "true: JSON is indented. Default: false, unless a browser asks.",
);
const ALLOW_WATCH_BOOKMARKS: Parameter = query(
    "allowWatchBookmarks",
    "boolean",
    "allowWatchBookmarks-HC2hJt-J",
    "A watch may send BOOKMARK events, which carry nothing but a resource version.",
);
const CONTINUE: Parameter = query(
    "continue",
    "string",
    "continue-QfD61s0i",
    "Goes on with a list at the place that metadata.continue of its last part named.",
);
const DRY_RUN: Parameter = query(
    "dryRun",
    "string",
    "",
    "All: the request is checked in every stage, but nothing is stored.",
);
const FIELD_MANAGER: Parameter = query(
    "fieldManager",
    "string",
    "fieldManager-Qy4HdaTW",
    "Who makes the change; at most 128 printable characters. Default: the beginning of User-Agent.",
);
const FIELD_MANAGER_OF_PATCH: Parameter = query(
    "fieldManager",
    "string",
    "fieldManager-7c6nTn1T",
    "Who makes the change; at most 128 printable characters. An apply patch must have it.",
);
const FIELD_SELECTOR: Parameter = query(
    "fieldSelector",
    "string",
    "fieldSelector-xIcQKXFG",
    "Only objects whose fields match.",
);
const FIELD_VALIDATION: Parameter = query(
    "fieldValidation",
    "string",
    "",
    "What to do with unknown and duplicate fields: Ignore, Warn (default) or Strict.",
);
const FORCE: Parameter = query(
    "force",
    "boolean",
    "force-tOGGb0Yi",
    "An apply patch takes over fields that others own.",
);
const GRACE_PERIOD_SECONDS: Parameter = query(
    "gracePeriodSeconds",
    "integer",
    "gracePeriodSeconds--K5HaBOS",
    "Seconds until the object is gone; 0: at once. Default: the kind's own.",
);
const IGNORE_STORE_READ_ERROR: Parameter = query(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "boolean",
    "ignoreStoreReadErrorWithClusterBreakingPotential-QbNkfIqj",
    "Deletes an object that cannot be read from the store any more, without finalizers or checks.",
);
const LABEL_SELECTOR: Parameter = query(
    "labelSelector",
    "string",
    "labelSelector-5Zw57w4C",
    "Only objects whose labels match.",
);
const LIMIT: Parameter = query(
    "limit",
    "integer",
    "limit-1NfNmdNH",
    "The most objects that one answer holds.",
);
const ORPHAN_DEPENDENTS: Parameter = query(
    "orphanDependents",
    "boolean",
    "orphanDependents-uRB25kX5",
    "Deprecated; use propagationPolicy. Whether dependents stay.",
);
const PROPAGATION_POLICY: Parameter = query(
    "propagationPolicy",
    "string",
    "propagationPolicy-6jk3prlO",
    "What becomes of dependents: Orphan, Background or Foreground.",
);
pub(super) const RESOURCE_VERSION: Parameter = query(
    "resourceVersion",
    "string",
    "resourceVersion-5WAnf1kx",
    "The resource version from which the answer may or must be served.",
);
const RESOURCE_VERSION_MATCH: Parameter = query(
    "resourceVersionMatch",
    "string",
    "resourceVersionMatch-t8XhRHeC",
    "How resourceVersion is meant: NotOlderThan or Exact.",
);
const SEND_INITIAL_EVENTS: Parameter = query(
    "sendInitialEvents",
    "boolean",
    "sendInitialEvents-rLXlEK_k",
    "A watch begins with the objects that exist, and a bookmark after them.",
);
const SHARD_SELECTOR: Parameter = query(
    "shardSelector",
    "string",
    "shardSelector-Kgyki_3_",
    "Only the objects of one shard.",
);
const TIMEOUT_SECONDS: Parameter = query(
    "timeoutSeconds",
    "integer",
    "timeoutSeconds-yvYezaOC",
    "Seconds after which the request ends.",
);
const WATCH: Parameter = query(
    "watch",
    "boolean",
    "watch-XNNPZGbK",
    "Changes as they happen instead of a list; begins at resourceVersion.",
);

/// Of lists and watches.
pub(super) static LIST: &[Parameter] = &[
    ALLOW_WATCH_BOOKMARKS,
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
    WATCH,
];
/// Of POST and PUT.
pub(super) static WRITE: &[Parameter] = &[DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
pub(super) static PATCH: &[Parameter] = &[DRY_RUN, FIELD_MANAGER_OF_PATCH, FIELD_VALIDATION, FORCE];
pub(super) static DELETE: &[Parameter] = &[
    DRY_RUN,
    GRACE_PERIOD_SECONDS,
    IGNORE_STORE_READ_ERROR,
    ORPHAN_DEPENDENTS,
    PROPAGATION_POLICY,
];
pub(super) static DELETE_COLLECTION: &[Parameter] = &[
    CONTINUE,
    DRY_RUN,
    FIELD_SELECTOR,
    GRACE_PERIOD_SECONDS,
    IGNORE_STORE_READ_ERROR,
    LABEL_SELECTOR,
    LIMIT,
    ORPHAN_DEPENDENTS,
    PROPAGATION_POLICY,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    SHARD_SELECTOR,
    TIMEOUT_SECONDS,
];

/// Keys in the table of shared parameters of v2 by kind and field of the options in a query. They are hashes of texts
/// that are not here, so they stand as they are.
const SHARED_OPTIONS: &[(&str, &str, &str)] = &[
    ("NodeProxyOptions", "path", "path-rFDtV0x9"),
    ("PodAttachOptions", "container", "container-_Q-EJ3nR"),
    ("PodAttachOptions", "stderr", "stderr-26jJhFUR"),
    ("PodAttachOptions", "stdin", "stdin-sEFnN3IS"),
    ("PodAttachOptions", "stdout", "stdout-005YMKE6"),
    ("PodAttachOptions", "tty", "tty-g7MlET_l"),
    ("PodExecOptions", "command", "command-Py3eQybp"),
    ("PodExecOptions", "container", "container-i5dOmRiM"),
    ("PodExecOptions", "stderr", "stderr-W_1TNlWc"),
    ("PodExecOptions", "stdin", "stdin-PSzNhyUC"),
    ("PodExecOptions", "stdout", "stdout--EZLRwV1"),
    ("PodExecOptions", "tty", "tty-s0flW37O"),
    ("PodLogOptions", "container", "container-1GeXxFDC"),
    ("PodLogOptions", "follow", "follow-9OIXh_2R"),
    (
        "PodLogOptions",
        "insecureSkipTLSVerifyBackend",
        "insecureSkipTLSVerifyBackend-gM00jVbe",
    ),
    ("PodLogOptions", "limitBytes", "limitBytes-zwd1RXuc"),
    ("PodLogOptions", "previous", "previous-1jxDPu3y"),
    ("PodLogOptions", "sinceSeconds", "sinceSeconds-vE2NLdnP"),
    ("PodLogOptions", "stream", "stream-l-48cgXv"),
    ("PodLogOptions", "tailLines", "tailLines-9xQLWHMV"),
    ("PodLogOptions", "timestamps", "timestamps-c17fW1w_"),
    ("PodPortForwardOptions", "ports", "ports-91KROJmm"),
    ("PodProxyOptions", "path", "path-oPbzgLUj"),
    ("ServiceProxyOptions", "path", "path-QCf0eosM"),
];

/// The query parameters that `kind` of options has: one for each field that is a scalar or a list of such.
pub(super) fn of_options(kind: &str, message: &MessageDesc) -> Vec<Parameter> {
    let parameter = |field: &FieldDesc| {
        let is = |row: &&(&str, &str, &str)| (row.0, row.1) == (kind, field.json.as_str());
        let shared = SHARED_OPTIONS.iter().find(is).map_or("", |row| row.2);
        Some(Parameter {
            name: field.json.clone(),
            ..query("", query_type(&field.ty)?, shared, "")
        })
    };
    message.fields.iter().filter_map(parameter).collect()
}

fn query_type(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Bool => Some("boolean"),
        Type::Int32 | Type::Int64 => Some("integer"),
        Type::Double => Some("number"),
        Type::String | Type::Bytes => Some("string"),
        Type::List(item) => query_type(&item.ty),
        Type::Message(_) | Type::Leaf(_) | Type::Map(_) | Type::Any | Type::Untyped => None,
    }
}
