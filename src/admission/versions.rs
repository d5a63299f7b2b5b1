//! Versions: the objects of a request in the version that a configuration names, and what was changed there taken back.

use keelson_machinery::copy;
use keelson_machinery::defaults;
use keelson_machinery::equality;
use keelson_machinery::json;
use keelson_machinery::managedfields::Managed;
use keelson_machinery::meta::v1::ManagedFieldsEntry;
use keelson_machinery::object::{self, Gvk, Kind, Object};
use keelson_machinery::scheme::{KindDesc, KindRef};
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Attributes;

/// What is said where plug-ins leave owners of fields behind that are none.
const INVALID_MANAGED_FIELDS: &str = ".metadata.managedFields was in an invalid state after admission; this could be \
    caused by an outdated mutating admission controller; please fix your requests: ";

/// An object as it is shown.
pub(crate) enum Shown<'a> {
    /// As the request has it.
    Own(&'a dyn Kind),
    /// In another version.
    Converted(Box<dyn Object>),
}

impl Shown<'_> {
    pub fn kind(&self) -> &dyn Kind {
        match self {
            Shown::Own(kind) => *kind,
            Shown::Converted(object) => &**object,
        }
    }
}

/// The objects of a request in one version.
pub(crate) struct Versioned<'a> {
    /// Of the objects: that of the subresource, if it has a kind of its own.
    pub gvk: Gvk,
    pub object: Option<Shown<'a>>,
    pub old: Option<Shown<'a>>,
}

/// The kind of the objects that requests of a subresource are about; "": the resource itself.
pub(crate) fn kind_of(kind: &KindDesc, subresource: &str) -> Gvk {
    own_kind(kind, subresource).unwrap_or_else(|| kind.gvk())
}

/// That of the subresource, if it has a kind of its own.
fn own_kind(kind: &KindDesc, subresource: &str) -> Option<Gvk> {
    let mut subresources = kind.subresources.iter();
    let found = subresources.find(|known| known.name == subresource && !known.kind.is_empty())?;
    Some(Gvk {
        group: found.group.clone(),
        version: found.version.clone(),
        kind: found.kind.clone(),
    })
}

/// The objects of a request as those of a kind of its resource.
///
/// # Errors
/// They can't be converted.
pub(crate) async fn versioned<'a>(
    attributes: &'a Attributes<'_>,
    target: &KindRef,
) -> Result<Versioned<'a>, StatusError> {
    let (object, old) = (attributes.object.as_deref(), attributes.old);
    let gvk = kind_of(target, attributes.subresource);
    Ok(Versioned {
        object: show(attributes, object, target).await?,
        old: show(attributes, old, target).await?,
        gvk,
    })
}

async fn show<'a>(
    attributes: &Attributes<'_>,
    object: Option<&'a dyn Kind>,
    target: &KindRef,
) -> Result<Option<Shown<'a>>, StatusError> {
    let Some(object) = object else { return Ok(None) };
    let hub = &attributes.resource.hub;
    if target.is(hub) || own_kind(target, attributes.subresource).is_some() {
        return Ok(Some(Shown::Own(object)));
    }
    let mut own = hub.new_object();
    copy::copy_message(own.as_reflect_mut(), object.as_reflect());
    let converted = attributes.resource.converted(own, hub, target).await;
    let converted = converted.map_err(|error| StatusError::internal_error(error.message))?;
    Ok(Some(Shown::Converted(converted)))
}

/// What was made of an object.
pub(crate) struct Changed {
    /// With the defaults of its version.
    pub object: Box<dyn Kind>,
    /// It is another one than before, defaults aside.
    pub differs: bool,
}

/// How what was made is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// Fields that nobody knows are left out.
    Lax,
    /// They are errors.
    Strict,
}

impl Reading {
    fn read(self, text: &[u8], object: &mut dyn Kind) -> Result<(), StatusError> {
        let problems = json::read(text, object.as_reflect_mut());
        let problems = problems.map_err(|error| StatusError::internal_error(error.to_string()))?;
        if self == Reading::Lax || problems.is_empty() {
            return Ok(());
        }
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let why = format!("strict decoding error: {}", problems.join(", "));
        Err(StatusError::internal_error(why))
    }
}

/// An empty object of the kind that requests of a resource are about.
pub(crate) fn fresh(attributes: &Attributes<'_>, target: &KindRef) -> Option<Box<dyn Kind>> {
    match own_kind(target, attributes.subresource) {
        None => Some(target.new_object()),
        Some(own) => attributes.registry()?.new_type(&own.group, &own.version, &own.kind),
    }
}

/// What was made of an object, with the defaults of its kind.
pub(crate) fn with_defaults(
    attributes: &Attributes<'_>,
    target: &KindRef,
    before: &dyn Kind,
    mut new: Box<dyn Kind>,
) -> Changed {
    let differs = !equality::equal(before.as_reflect(), new.as_reflect());
    if own_kind(target, attributes.subresource).is_some() {
        defaults::apply(new.as_reflect_mut());
        return Changed { object: new, differs };
    }
    let mut object = target.new_object();
    copy::copy_message(object.as_reflect_mut(), new.as_reflect());
    attributes.resource.apply_defaults(target, &mut *object);
    Changed { object, differs }
}

/// Reads what was made of an object of a kind, as Go's decoder does: a text that names another kind is one of that.
///
/// # Errors
/// It is none, or can't be taken for one of the wanted kind.
pub(crate) fn read_back(
    attributes: &Attributes<'_>,
    target: &KindRef,
    before: &dyn Kind,
    text: &[u8],
    reading: Reading,
) -> Result<Changed, StatusError> {
    let internal = |why: String| StatusError::internal_error(why);
    let wanted = kind_of(target, attributes.subresource);
    let named = json::type_meta(text).map_err(|error| internal(error.to_string()))?;
    let is_wanted = (named.kind.is_empty() || named.kind == wanted.kind.as_str())
        && (named.api_version.is_empty() || named.api_version == wanted.api_version());
    if is_wanted {
        let missing = || internal(object::not_registered(&named.kind, &named.api_version));
        let mut object = fresh(attributes, target).ok_or_else(missing)?;
        reading.read(text, &mut *object)?;
        return Ok(with_defaults(attributes, target, before, object));
    }
    let (group, version) = named.api_version.split_once('/').unwrap_or(("", &named.api_version));
    let (kind, known) = (named.kind.as_str(), attributes.registry());
    let new = known.and_then(|all| all.new_type(group, version, kind));
    let mut object = new.ok_or_else(|| internal(object::not_registered(kind, &named.api_version)))?;
    reading.read(text, &mut *object)?;
    Err(StatusError::unknown(unconvertible((version, kind), &wanted)))
}

/// In the words of Go's converters: packages of types are named by their version, internal ones by their group.
fn unconvertible((version, kind): (&str, &str), wanted: &Gvk) -> String {
    let package = match wanted.group.split('.').next() {
        None | Some("") => "core",
        Some(group) => group,
    };
    format!(
        "converting ({version}.{kind}) to ({package}.{}): unknown conversion",
        wanted.kind
    )
}

/// Makes the object of the request what was made of it in another version.
///
/// # Errors
/// It can't be converted.
pub(crate) async fn take_back(
    attributes: &mut Attributes<'_>,
    target: &KindRef,
    new: Box<dyn Kind>,
) -> Result<(), StatusError> {
    let hub = attributes.resource.hub.clone();
    let before = attributes.metadata().map(|metadata| metadata.managed_fields.clone());
    if target.is(&hub) || own_kind(target, attributes.subresource).is_some() {
        if let Some(object) = attributes.object.as_deref_mut() {
            copy::copy_message(object.as_reflect_mut(), new.as_reflect());
        }
    } else {
        let mut own = target.new_object();
        copy::copy_message(own.as_reflect_mut(), new.as_reflect());
        let converted = attributes.resource.converted(own, target, &hub).await?;
        if let Some(object) = attributes.object.as_deref_mut() {
            copy::copy_message(object.as_reflect_mut(), converted.as_reflect());
        }
    }
    keep_owners(attributes, before);
    Ok(())
}

/// Puts back the owners of fields where they can't be read any more.
fn keep_owners(attributes: &mut Attributes<'_>, before: Option<Vec<ManagedFieldsEntry>>) {
    let (Some(before), Some(metadata)) = (before, attributes.metadata_mut()) else {
        return;
    };
    if let Err(error) = Managed::read_given(&metadata.managed_fields) {
        metadata.managed_fields = before;
        attributes.warn(format!("{INVALID_MANAGED_FIELDS}{error}"));
    }
}
