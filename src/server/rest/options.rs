//! The options that come in the query: read, then checked by the rules of the machinery.

use std::num::{IntErrorKind, ParseIntError};

use keelson_access::request_info::Query;
use keelson_machinery::budget::Budget;
use keelson_machinery::decode::DecodeError;
use keelson_machinery::field::ErrorList;
use keelson_machinery::field::text::quote;
use keelson_machinery::json;
use keelson_machinery::meta::v1;
use keelson_machinery::meta::v1::{DeleteOptions, Preconditions};
use keelson_machinery::protobuf;
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_machinery::status::StatusError;
use keelson_machinery::validation::options as rules;
use keelson_registry::{RevisionError, parse_revision};
use keelson_storage::Revision;

const META_GROUP: &str = "meta.k8s.io";

/// `fieldValidation`: what happens to unknown and repeated fields of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    pub dry_run: bool,
    pub field_manager: String,
    pub field_validation: FieldValidation,
}

/// Which verb's options are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writing {
    Create,
    Update,
    Patch,
    /// A patch of the type for apply.
    Apply,
}

impl WriteOptions {
    pub fn parse(query: &Query, writing: Writing) -> Result<WriteOptions, StatusError> {
        let dry_run: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        let text = |key: &str| query.get(key).unwrap_or_default().to_owned();
        let (field_manager, field_validation) = (text("fieldManager"), text("fieldValidation"));
        let options = WriteOptions {
            dry_run: !dry_run.is_empty(),
            field_manager: field_manager.clone(),
            field_validation: match field_validation.as_str() {
                "Ignore" => FieldValidation::Ignore,
                "Strict" => FieldValidation::Strict,
                _ => FieldValidation::Warn,
            },
        };
        let (kind, errors) = match writing {
            Writing::Create => {
                let message = v1::CreateOptions {
                    dry_run,
                    field_manager,
                    field_validation,
                };
                ("CreateOptions", rules::validate_create_options(&message))
            }
            Writing::Update => {
                let message = v1::UpdateOptions {
                    dry_run,
                    field_manager,
                    field_validation,
                };
                ("UpdateOptions", rules::validate_update_options(&message))
            }
            Writing::Patch | Writing::Apply => {
                let force = query.has("force").then(|| query.flag("force"));
                let message = v1::PatchOptions {
                    dry_run,
                    field_manager,
                    field_validation,
                    force,
                };
                (
                    "PatchOptions",
                    rules::validate_patch_options(&message, writing == Writing::Apply),
                )
            }
        };
        verdict(kind, errors)?;
        Ok(options)
    }
}

fn verdict(kind: &str, errors: ErrorList) -> Result<(), StatusError> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(StatusError::invalid(META_GROUP, kind, "", &errors))
    }
}

/// How the resource version of a list is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    Exact,
    NotOlderThan,
}

/// The options of list, watch and deletecollection.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    pub bookmarks: bool,
    pub resource_version: String,
    pub version_match: Option<Match>,
    pub send_initial_events: Option<bool>,
    /// Seconds; a watch ends after them.
    pub timeout_seconds: Option<i64>,
    /// 0: no limit.
    pub limit: usize,
    pub continue_token: String,
}

impl ListOptions {
    pub fn parse(query: &Query, watch: bool) -> Result<ListOptions, StatusError> {
        let text = |key: &str| query.get(key).unwrap_or_default().to_owned();
        let mut message = v1::ListOptions {
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            watch,
            allow_watch_bookmarks: query.flag("allowWatchBookmarks"),
            resource_version: text("resourceVersion"),
            resource_version_match: text("resourceVersionMatch"),
            timeout_seconds: integer(query, "timeoutSeconds")?,
            limit: integer(query, "limit")?.unwrap_or(0),
            r#continue: text("continue"),
            send_initial_events: query.has("sendInitialEvents").then(|| query.flag("sendInitialEvents")),
            ..v1::ListOptions::default()
        };
        begin_with_state(&mut message);
        let selector = |e: &dyn std::fmt::Display| StatusError::bad_request(e.to_string());
        let labels = LabelSelector::parse(&message.label_selector).map_err(|e| selector(&e))?;
        let fields = FieldSelector::parse(&message.field_selector).map_err(|e| selector(&e))?;
        verdict("ListOptions", rules::validate_list_options(&message))?;
        Ok(ListOptions {
            labels,
            fields,
            bookmarks: message.allow_watch_bookmarks,
            resource_version: message.resource_version,
            version_match: match message.resource_version_match.as_str() {
                "Exact" => Some(Match::Exact),
                "NotOlderThan" => Some(Match::NotOlderThan),
                _ => None,
            },
            send_initial_events: message.send_initial_events,
            timeout_seconds: message.timeout_seconds,
            limit: usize::try_from(message.limit).unwrap_or(0),
            continue_token: message.r#continue,
        })
    }

    /// Whether some objects may be left out.
    pub fn is_selective(&self) -> bool {
        !self.labels.is_everything() || !self.fields.is_everything()
    }
}

/// A watch that names no version, or says that any will do, begins with the present state, as if it had asked for it.
fn begin_with_state(options: &mut v1::ListOptions) {
    let anywhere = matches!(options.resource_version.as_str(), "" | "0");
    if options.watch && anywhere && options.resource_version_match.is_empty() && options.send_initial_events.is_none() {
        options.send_initial_events = Some(true);
        options.resource_version_match = "NotOlderThan".to_owned();
    }
}

/// A resource version of a query that is none.
#[derive(Debug, thiserror::Error)]
#[error("resourceVersion: Invalid value: {}: {error}", quote(.text))]
pub struct InvalidRevision {
    text: String,
    error: RevisionError,
}

/// A revision out of a query; "" and zero are none.
pub fn revision(text: &str) -> Result<Option<Revision>, InvalidRevision> {
    parse_revision(text).map_err(|error| InvalidRevision {
        text: text.to_owned(),
        error,
    })
}

fn integer(query: &Query, key: &str) -> Result<Option<i64>, StatusError> {
    let Some(text) = query.get(key) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|e: ParseIntError| {
        let why = match e.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        StatusError::bad_request(format!("strconv.ParseInt: parsing {}: {why}", quote(text)))
    })
}

/// Preconditions may stand in the query too.
fn preconditions(query: &Query) -> Option<Box<Preconditions>> {
    let value = |key: &str| query.get(key).map(str::to_owned);
    let (uid, resource_version) = (value("uid"), value("resourceVersion"));
    (uid.is_some() || resource_version.is_some()).then(|| Box::new(Preconditions { uid, resource_version }))
}

/// The options of a deletion in the query.
pub fn delete_options_of_query(query: &Query) -> Result<DeleteOptions, StatusError> {
    let options = DeleteOptions {
        grace_period_seconds: integer(query, "gracePeriodSeconds")?,
        orphan_dependents: query.has("orphanDependents").then(|| query.flag("orphanDependents")),
        propagation_policy: query.get("propagationPolicy").map(str::to_owned),
        preconditions: preconditions(query),
        dry_run: query.all("dryRun").map(str::to_owned).collect(),
        ..DeleteOptions::default()
    };
    checked_delete_options(options)
}

/// The options of a deletion in a JSON body, which may contradict themselves.
pub fn delete_options_of_json(json: &[u8]) -> Result<DeleteOptions, StatusError> {
    let mut options = DeleteOptions::default();
    json::read_within(json, &mut options, &Budget::of_request()).map_err(|e| match e {
        DecodeError::Syntax { message, .. } => {
            StatusError::bad_request(format!("couldn't get version/kind; json parse error: {message}"))
        }
        e @ DecodeError::TooLarge => StatusError::entity_too_large(e),
        e => StatusError::bad_request(e.to_string()),
    })?;
    Ok(options)
}

/// The same of a message in protobuf.
pub fn delete_options_of_protobuf(raw: &[u8]) -> Result<DeleteOptions, StatusError> {
    let mut options = DeleteOptions::default();
    protobuf::read_message_within(raw, &mut options, &Budget::of_request()).map_err(|e| match e {
        e @ DecodeError::TooLarge => StatusError::entity_too_large(e),
        e => StatusError::bad_request(e.to_string()),
    })?;
    Ok(options)
}

/// Refuses options that contradict themselves.
pub fn checked_delete_options(mut options: DeleteOptions) -> Result<DeleteOptions, StatusError> {
    // The feature behind this option is off in kube-apiserver, where the option has no effect and so none beside
    // others. Here it has one for what can't be read, which nothing but its name is known of: alone it counts.
    let insists = options.ignore_store_read_error_with_cluster_breaking_potential.take();
    verdict("DeleteOptions", rules::validate_delete_options(&options))?;
    if insists == Some(true) {
        options.ignore_store_read_error_with_cluster_breaking_potential = insists;
        if !rules::validate_delete_options(&options).is_empty() {
            options.ignore_store_read_error_with_cluster_breaking_potential = None;
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::delete_options_of_protobuf;

    /// Two bytes an item: `dryRun` is field 5.
    #[test]
    fn options_in_protobuf_are_read_within_the_budget_of_a_request() {
        let read = |items: usize| delete_options_of_protobuf(&[0x2a, 0].repeat(items)).map(|_| ());
        assert_eq!(read(1_000_000).unwrap_err().code, 413);
        assert!(read(1000).is_ok());
    }
}
