//! Rules of the options of requests: dry run, field manager, field validation, propagation, list and table options.

use super::meta::validate_field_manager;
use crate::field::{BadValue, ErrorList, FieldError, Path};
use crate::meta::v1::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, TableOptions, UpdateOptions};

/// What a client may say in `?fieldValidation=`; "" is the default.
const FIELD_VALIDATION: [&str; 4] = ["", "Ignore", "Strict", "Warn"];

/// Options of a create.
pub fn validate_create_options(options: &CreateOptions) -> ErrorList {
    write_options(&options.field_manager, &options.dry_run, &options.field_validation)
}

/// Options of an update.
pub fn validate_update_options(options: &UpdateOptions) -> ErrorList {
    write_options(&options.field_manager, &options.dry_run, &options.field_validation)
}

/// Options of a patch; `apply` for server-side apply, which needs a field manager and alone may be forced.
pub fn validate_patch_options(options: &PatchOptions, apply: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    if apply && options.field_manager.is_empty() {
        errors.push(FieldError::required(
            &Path::new("fieldManager"),
            "is required for apply patch",
        ));
    }
    if !apply && options.force.is_some() {
        errors.push(FieldError::forbidden(
            &Path::new("force"),
            "may not be specified for non-apply patch",
        ));
    }
    errors.extend(write_options(
        &options.field_manager,
        &options.dry_run,
        &options.field_validation,
    ));
    errors
}

fn write_options(manager: &str, dry_run: &[String], field_validation: &str) -> ErrorList {
    let mut errors = validate_field_manager(manager, &Path::new("fieldManager"));
    errors.extend(validate_dry_run(dry_run));
    if !FIELD_VALIDATION.contains(&field_validation) {
        let path = Path::new("fieldValidation");
        errors.push(FieldError::not_supported(&path, field_validation, &FIELD_VALIDATION));
    }
    errors
}

fn validate_dry_run(dry_run: &[String]) -> ErrorList {
    if dry_run.iter().all(|v| v == "All") {
        return ErrorList::new();
    }
    FieldError::not_supported(&Path::new("dryRun"), dry_run, &["All"]).into()
}

/// Options of a delete.
pub fn validate_delete_options(options: &DeleteOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("propagationPolicy");
    let policy = options.propagation_policy.as_deref();
    // The policy is a pointer to a named string there, so that it is shown as JSON, which is the same but for escapes.
    let value = policy.map_or_else(BadValue::null, BadValue::from);
    if options.orphan_dependents.is_some() && policy.is_some() {
        let text = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid(&path, value.clone(), text));
    }
    if !matches!(policy, None | Some("Foreground" | "Background" | "Orphan")) {
        let known = ["Foreground", "Background", "Orphan", "nil"];
        errors.push(FieldError::not_supported(&path, value, &known));
    }
    errors.extend(validate_dry_run(&options.dry_run));
    if errors.is_empty() {
        errors.extend(validate_ignore_read_error(options));
    }
    errors
}

/// Deleting what cannot be read goes with no other option.
fn validate_ignore_read_error(options: &DeleteOptions) -> ErrorList {
    if options.ignore_store_read_error_with_cluster_breaking_potential != Some(true) {
        return ErrorList::new();
    }
    let path = Path::new("ignoreStoreReadErrorWithClusterBreakingPotential");
    [
        ("dryRun", !options.dry_run.is_empty()),
        ("propagationPolicy", options.propagation_policy.is_some()),
        ("orphanDependents", options.orphan_dependents.is_some()),
        ("gracePeriodSeconds", options.grace_period_seconds.is_some()),
        ("preconditions", options.preconditions.is_some()),
    ]
    .into_iter()
    .filter(|(_, set)| *set)
    .map(|(option, _)| FieldError::invalid(&path, true, format!("cannot be set together with .{option}")))
    .collect()
}

/// Options of a list or watch: which of them go together.
pub fn validate_list_options(options: &ListOptions) -> ErrorList {
    if options.watch {
        validate_watch(options)
    } else {
        validate_list(options)
    }
}

fn validate_list(options: &ListOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("resourceVersionMatch");
    let matching = options.resource_version_match.as_str();
    if !matching.is_empty() {
        if options.resource_version.is_empty() {
            let text = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(&path, text));
        }
        if !options.r#continue.is_empty() {
            errors.push(FieldError::forbidden(
                &path,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(matching, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(
                &path,
                matching,
                &["Exact", "NotOlderThan", ""],
            ));
        }
        if matching == "Exact" && options.resource_version == "0" {
            let text = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(&path, text));
        }
    }
    if options.send_initial_events.is_some() {
        let path = Path::new("sendInitialEvents");
        errors.push(FieldError::forbidden(&path, "sendInitialEvents is forbidden for list"));
    }
    errors
}

fn validate_watch(options: &ListOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("resourceVersionMatch");
    let matching = options.resource_version_match.as_str();
    if options.send_initial_events.is_some() && matching != "NotOlderThan" {
        let text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(&path, text));
    }
    if matching.is_empty() {
        return errors;
    }
    if options.send_initial_events.is_none() {
        let text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push(FieldError::forbidden(&path, text));
    }
    if matching != "NotOlderThan" {
        errors.push(FieldError::not_supported(&path, matching, &["NotOlderThan"]));
    }
    if !options.r#continue.is_empty() {
        errors.push(FieldError::forbidden(
            &path,
            "resourceVersionMatch is forbidden when continue is provided",
        ));
    }
    errors
}

/// Options of a Table.
pub fn validate_table_options(options: &TableOptions) -> ErrorList {
    match options.include_object.as_str() {
        "" | "None" | "Metadata" | "Object" => ErrorList::new(),
        other => {
            let text = "must be 'Metadata', 'Object', 'None', or empty";
            FieldError::invalid(&Path::new("includeObject"), other, text).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(errors: ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn write_options_are_checked() {
        let mut options = PatchOptions::default();
        assert!(validate_patch_options(&options, false).is_empty());
        assert_eq!(
            texts(validate_patch_options(&options, true)),
            ["fieldManager: Required value: is required for apply patch"]
        );
        options.force = Some(true);
        options.dry_run = vec!["Some".into()];
        options.field_validation = "Maybe".into();
        options.field_manager = "m".repeat(129);
        assert_eq!(
            texts(validate_patch_options(&options, false)),
            [
                "force: Forbidden: may not be specified for non-apply patch",
                "fieldManager: Too long: may not be more than 128 bytes",
                "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
                "fieldValidation: Unsupported value: \"Maybe\": supported values: \"\", \"Ignore\", \"Strict\", \
                 \"Warn\"",
            ]
        );
    }

    #[test]
    fn delete_options_are_checked() {
        let mut options = DeleteOptions {
            orphan_dependents: Some(true),
            ..DeleteOptions::default()
        };
        assert!(validate_delete_options(&options).is_empty());
        options.propagation_policy = Some("Later".into());
        assert_eq!(
            texts(validate_delete_options(&options)),
            [
                "propagationPolicy: Invalid value: \"Later\": orphanDependents and deletionPropagation cannot be \
                 both set",
                "propagationPolicy: Unsupported value: \"Later\": supported values: \"Foreground\", \"Background\", \
                 \"Orphan\", \"nil\"",
            ]
        );
    }

    #[test]
    fn list_options_that_exclude_each_other_are_refused() {
        let list = ListOptions {
            resource_version_match: "Exact".into(),
            ..ListOptions::default()
        };
        assert_eq!(
            texts(validate_list_options(&list)),
            ["resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"]
        );
        let zero = ListOptions {
            resource_version: "0".into(),
            ..list.clone()
        };
        assert_eq!(
            texts(validate_list_options(&zero)),
            ["resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""]
        );
        let watch = ListOptions { watch: true, ..list };
        assert_eq!(
            texts(validate_list_options(&watch)),
            [
                "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless \
                 sendInitialEvents is provided",
                "resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"",
            ]
        );
        let initial = ListOptions {
            watch: true,
            send_initial_events: Some(true),
            ..ListOptions::default()
        };
        assert_eq!(
            texts(validate_list_options(&initial)),
            [
                "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to \
              NotOlderThan"
            ]
        );
    }

    #[test]
    fn table_options_are_checked() {
        let options = TableOptions {
            include_object: "All".into(),
        };
        assert_eq!(
            texts(validate_table_options(&options)),
            ["includeObject: Invalid value: \"All\": must be 'Metadata', 'Object', 'None', or empty"]
        );
    }
}
