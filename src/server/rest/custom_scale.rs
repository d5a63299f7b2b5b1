//! The scale of a custom resource: numbers at paths that need not be there, nor be numbers.

use keelson_machinery::jsonpath::nested;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::reflect::{Reflect, Value};
use keelson_machinery::scheme::SubresourceDesc;
use keelson_machinery::status::StatusError;
use keelson_machinery::{json, yaml};

use crate::negotiate::Format;

/// What stands for a number of replicas that is not there: a patch sees it, and must not leave it.
const NO_REPLICAS: i32 = i32::MIN;

/// What a Scale shows of an object.
pub(super) struct Replicas {
    /// `None`: nothing is said.
    pub wanted: Option<i32>,
    pub present: i32,
    pub selector: String,
}

/// Of an object that is known as a tree alone. Numbers are cut to 32 bits, as the original cuts them.
pub(super) fn replicas(scale: &SubresourceDesc, object: &dyn Object) -> Result<Replicas, StatusError> {
    let number = |path: &str| {
        let found = nested::int64(object.as_reflect(), path).map_err(StatusError::unknown)?;
        Ok::<_, StatusError>(found.map(|number| number as i32))
    };
    let selector = match scale.label_selector_path.as_str() {
        "" => None,
        path => nested::text(object.as_reflect(), path).map_err(StatusError::unknown)?,
    };
    Ok(Replicas {
        wanted: number(&scale.spec_replicas_path)?,
        present: number(&scale.status_replicas_path)?.unwrap_or_default(),
        selector: selector.unwrap_or_default().to_owned(),
    })
}

/// 500 for the scale of an object that says no number of replicas.
pub(super) fn check_present(scale: &SubresourceDesc, object: &dyn Object) -> Result<(), StatusError> {
    match replicas(scale, object)?.wanted {
        Some(_) => Ok(()),
        None => Err(StatusError::internal_error(format!(
            "the spec replicas field {:?} does not exist",
            scale.spec_replicas_path
        ))),
    }
}

/// The Scale that a patch is applied to: it shows whether there is a number of replicas.
pub(super) fn mark_absent(
    scale: &SubresourceDesc,
    object: &dyn Object,
    view: &mut dyn Kind,
) -> Result<(), StatusError> {
    if replicas(scale, object)?.wanted.is_some() {
        return Ok(());
    }
    let number = i64::from(NO_REPLICAS);
    nested::set_int64(view.as_reflect_mut(), ".spec.replicas", number).map_err(StatusError::internal_error)
}

/// The object with the replicas of a Scale.
pub(super) fn put_replicas(
    scale: &SubresourceDesc,
    object: &mut dyn Object,
    view: &dyn Reflect,
) -> Result<(), StatusError> {
    let replicas = match keelson_machinery::jsonpath::field(view, "spec") {
        Some(Value::Message(spec)) => match keelson_machinery::jsonpath::field(spec, "replicas") {
            Some(Value::Int32(replicas)) => replicas,
            _ => 0,
        },
        _ => 0,
    };
    if replicas == NO_REPLICAS {
        return Err(StatusError::bad_request(format!(
            "the spec replicas field {:?} cannot be empty",
            scale.spec_replicas_path
        )));
    }
    let path = &scale.spec_replicas_path;
    nested::set_int64(object.as_reflect_mut(), path, replicas.into()).map_err(StatusError::unknown)
}

/// The answer to a body that is no Scale: the original finds its type in no table.
pub(super) fn refused(scale: &SubresourceDesc, format: Format, body: &[u8], error: StatusError) -> StatusError {
    let json = match format {
        Format::Json => body.to_vec(),
        Format::Yaml => yaml::to_json(body).unwrap_or_default(),
        Format::Protobuf => return error,
    };
    let Ok(named) = json::type_meta(&json) else {
        return error;
    };
    let version = keelson_machinery::object::api_version(&scale.group, &scale.version);
    let is = |named: &str, wanted: &str| named.is_empty() || named == wanted;
    match is(&named.kind, &scale.kind) && is(&named.api_version, &version) {
        true => error,
        false => StatusError::bad_request(format!(
            "no kind is registered for the type {}.{} in scheme \"pkg/runtime/scheme.go:111\"",
            scale.version, scale.kind
        )),
    }
}
