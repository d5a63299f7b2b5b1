use super::*;
use crate::field::{FieldError, Path};

#[test]
fn messages_name_the_resource_with_its_group() {
    for (error, code, reason, message) in [
        (
            StatusError::not_found("", "configmaps", "x"),
            404,
            "NotFound",
            r#"configmaps "x" not found"#,
        ),
        (
            StatusError::not_found("example.com", "widgets", "x"),
            404,
            "NotFound",
            r#"widgets.example.com "x" not found"#,
        ),
        (
            StatusError::already_exists("apps", "deployments", "x"),
            409,
            "AlreadyExists",
            r#"deployments.apps "x" already exists"#,
        ),
        (
            StatusError::conflict("", "configmaps", "x", STALE),
            409,
            "Conflict",
            "Operation cannot be fulfilled on configmaps \"x\": the object has been modified; please apply your \
             changes to the latest version and try again",
        ),
        (
            StatusError::forbidden("", "pods", "", "User \"a\" cannot list"),
            403,
            "Forbidden",
            r#"pods is forbidden: User "a" cannot list"#,
        ),
        (
            StatusError::forbidden("", "pods", "p", "no"),
            403,
            "Forbidden",
            r#"pods "p" is forbidden: no"#,
        ),
        (
            StatusError::forbidden("", "", "", "no"),
            403,
            "Forbidden",
            "forbidden: no",
        ),
        (
            StatusError::method_not_supported("example.com", "widgets", "create"),
            405,
            "MethodNotAllowed",
            r#"create is not supported on resources of kind "widgets.example.com""#,
        ),
        (
            StatusError::method_not_allowed(),
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        (
            StatusError::no_such_resource(),
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
        (
            StatusError::not_acceptable(&["application/json", "application/yaml"]),
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml",
        ),
        (
            StatusError::unsupported_media_type(&["a", "b"]),
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: a, b",
        ),
        (
            StatusError::request_entity_too_large(3145728),
            413,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
        ),
        (
            StatusError::server_timeout("", "pods", "get", 2),
            500,
            "ServerTimeout",
            "The get operation against pods could not be completed at this time, please try again.",
        ),
        (
            StatusError::internal_error("boom"),
            500,
            "InternalError",
            "Internal error occurred: boom",
        ),
        (StatusError::unknown("boom"), 500, "", "boom"),
        (
            StatusError::generic(500, "a"),
            500,
            "InternalError",
            r#"an error on the server ("a") has prevented the request from succeeding"#,
        ),
        (
            StatusError::too_old_resource_version(5, 9),
            410,
            "Expired",
            "too old resource version: 5 (9)",
        ),
    ] {
        assert_eq!(
            (error.code, error.reason.as_ref(), error.message.as_str()),
            (code, reason, message)
        );
    }
}

#[test]
fn an_invalid_object_lists_its_causes() {
    let mut errors = ErrorList::new();
    errors.push(FieldError::required(
        &Path::new("metadata.name"),
        "name or generateName is required",
    ));
    let one = StatusError::invalid("", "ConfigMap", "", &errors);
    assert_eq!(
        one.message,
        r#"ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#
    );
    errors.push(FieldError::invalid(&Path::new("data"), 5, "no"));
    let two = StatusError::invalid("apps", "Deployment", "d", &errors);
    assert_eq!(
        two.message,
        "Deployment.apps \"d\" is invalid: [metadata.name: Required value: name or generateName is required, data: \
         Invalid value: 5: no]"
    );
    let status = two.to_status();
    let details = status.details.unwrap();
    assert_eq!(
        (status.code, status.reason.as_str(), status.status.as_str()),
        (422, "Invalid", "Failure")
    );
    assert_eq!(
        (details.group.as_str(), details.kind.as_str(), details.name.as_str()),
        ("apps", "Deployment", "d")
    );
    let causes: Vec<_> = details
        .causes
        .iter()
        .map(|c| (c.reason.as_str(), c.message.as_str(), c.field.as_str()))
        .collect();
    assert_eq!(
        causes,
        [
            (
                "FieldValueRequired",
                "Required value: name or generateName is required",
                "metadata.name"
            ),
            ("FieldValueInvalid", "Invalid value: 5: no", "data")
        ]
    );
}

#[test]
fn waiting_and_expiry_say_how_to_go_on() {
    let future = StatusError::too_large_resource_version(10, 7).to_status();
    assert_eq!((future.code, future.reason.as_str()), (504, "Timeout"));
    assert_eq!(future.message, "Timeout: Too large resource version: 10, current: 7");
    let details = future.details.unwrap();
    assert_eq!(details.retry_after_seconds, 1);
    assert_eq!(details.causes[0].reason, "ResourceVersionTooLarge");
    assert_eq!(details.causes[0].message, "Too large resource version");

    let expired = StatusError::expired_continue("token").to_status();
    assert_eq!((expired.code, expired.reason.as_str()), (410, "Expired"));
    assert_eq!(expired.metadata.r#continue, "token");
    assert!(
        expired
            .message
            .starts_with("The provided continue parameter is too old to display a consistent list")
    );
    assert!(
        expired
            .message
            .ends_with("was returned and now may show up in the list.")
    );
    assert!(!expired.message.contains("  "));
}
