//! The build-time scheme: static tables that the code generator writes, one per crate with definitions.

use crate::field::BadValue;
use crate::reflect::object::{Gvk, Kind, Object};
use crate::reflect::{Desc, Reflect};

pub use crate::reflect::{Name, Names, Ref};

/// Everything that one build of definitions yields.
pub struct Scheme {
    /// Ordered as discovery lists them: by group priority, then version priority, both descending.
    pub groups: &'static [GroupDesc],
    /// Kinds without a resource of their own that bodies, queries and lists use (DeleteOptions, Scale, Status …).
    pub types: &'static [TypeDesc],
    /// Deflated JSON: `{"<definition>": <OpenAPI v3 schema>}` for every message of the build.
    pub definitions: &'static [u8],
    /// Descriptions of `metadata.name` and `metadata.creationTimestamp`, for the columns that every kind has.
    pub name_description: &'static str,
    pub creation_description: &'static str,
}

pub struct GroupDesc {
    /// "" is the legacy group.
    pub name: &'static str,
    pub priority: i32,
    /// Preferred first.
    pub versions: &'static [VersionDesc],
}

pub struct VersionDesc {
    pub version: &'static str,
    pub priority: i32,
    /// Served without being asked for.
    pub enabled: bool,
    /// False: objects may be stored in it, but it cannot be switched on.
    pub served: bool,
    pub kinds: &'static [KindDesc],
}

/// A kind that has no resource of its own.
pub struct TypeDesc {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    /// What a Table shows of it, where a subresource answers with it; none: there is no Table.
    pub columns: &'static [ColumnDesc],
    pub message: Desc,
}

impl TypeDesc {
    /// A new, empty one.
    pub fn new_kind(&self) -> Box<dyn Kind> {
        self.message.new_kind()
    }
}

/// Takes an object of one version to another.
pub type Convert = fn(Box<dyn Object>) -> Result<Box<dyn Object>, ConvertError>;

/// How objects of a version become those of the hub version, and back.
#[derive(Clone, Copy, Debug)]
pub enum Conversion {
    /// It is the hub version.
    None,
    /// By code that goes with the definitions.
    Code {
        to_hub: Convert,
        from_hub: Convert,
        /// Both leave the metadata as it is.
        metadata_stays: bool,
    },
}

impl Conversion {
    /// To the hub version.
    pub fn to_hub(self, object: Box<dyn Object>) -> Result<Box<dyn Object>, ConvertError> {
        match self {
            Conversion::None => Ok(object),
            Conversion::Code { to_hub, .. } => to_hub(object),
        }
    }

    /// From the hub version.
    pub fn from_hub(self, object: Box<dyn Object>) -> Result<Box<dyn Object>, ConvertError> {
        match self {
            Conversion::None => Ok(object),
            Conversion::Code { from_hub, .. } => from_hub(object),
        }
    }
}

/// A kind with a resource.
#[derive(Clone, Debug)]
pub struct KindDesc {
    pub group: Name,
    pub version: Name,
    pub kind: Name,
    pub list_kind: Name,
    pub plural: Name,
    pub singular: Name,
    pub short_names: Names,
    pub categories: Names,
    pub namespaced: bool,
    pub verbs: Names,
    pub subresources: Ref<[SubresourceDesc]>,
    pub columns: Ref<[ColumnDesc]>,
    /// This version is the one written to the store.
    pub storage: bool,
    /// This version is the one that strategies see.
    pub hub: bool,
    /// Path below the store's prefix, `services/specs`, `apps.example.com/widgets`; no slash at either end.
    pub storage_path: Name,
    pub names: NameRule,
    pub generation: bool,
    pub create_on_update: bool,
    pub conditional_update: bool,
    pub returns_deleted: bool,
    /// What field selectors may use beside metadata.name and metadata.namespace: dotted JSON paths of the hub version,
    /// or `label=path`, `label=path|path`.
    pub selectable_fields: Names,
    /// Text of a warning that every answer carries; empty for kinds that are not deprecated.
    pub deprecation: Name,
    /// Nothing is stored: code registered with the server says what the verbs do.
    pub unstored: bool,
    /// Stored as JSON, not as protobuf.
    pub stored_as_json: bool,
    /// The kind of another group whose objects these are too: it has the stored and the hub version.
    pub same_as: Option<Gvk>,
    pub message: Desc,
    pub conversion: Conversion,
    /// [`Id::fresh`](crate::reflect::Id::fresh) of one that is made at run time; 0 of one of a build.
    pub own_id: u64,
}

/// The handle of a kind's description.
pub type KindRef = Ref<KindDesc>;

impl KindDesc {
    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
        }
    }

    /// A number that no other version of a kind has or will ever have, to keep under it what was made by this
    /// description.
    pub fn id(&self) -> u64 {
        match self.own_id {
            // It is all that there is of its message.
            0 => self.message.id.get(),
            id => id,
        }
    }

    /// A new, empty object.
    pub fn new_object(&self) -> Box<dyn Object> {
        self.message.new_object()
    }

    /// To the hub version; the same object for the hub itself.
    pub fn to_hub(&self, object: Box<dyn Object>) -> Result<Box<dyn Object>, ConvertError> {
        self.conversion.to_hub(object)
    }

    /// From the hub version.
    pub fn from_hub(&self, object: Box<dyn Object>) -> Result<Box<dyn Object>, ConvertError> {
        self.conversion.from_hub(object)
    }
}

#[derive(Clone, Debug)]
pub struct SubresourceDesc {
    pub name: Name,
    /// Group, version and kind of the body; that of the parent when empty.
    pub group: Name,
    pub version: Name,
    pub kind: Name,
    pub verbs: Names,
    /// Of "scale": `.spec.replicas`, `.status.replicas`, `.status.selector`.
    pub spec_replicas_path: Name,
    pub status_replicas_path: Name,
    pub label_selector_path: Name,
    /// Code talks with the client itself; the verbs stand for methods, the kind is that of the options in the query.
    pub connect: bool,
    /// Group, version and kind of the options in the query; all empty where there are none.
    pub options: [Name; 3],
    /// Paths below it belong to it too.
    pub subpaths: bool,
    /// Media type of answers that are no objects; empty where they are.
    pub produces: Name,
}

#[derive(Clone, Debug)]
pub struct ColumnDesc {
    pub name: Name,
    pub ty: Name,
    pub format: Name,
    pub description: Name,
    pub priority: i32,
    /// JSON path of the cell; empty where `function` says it.
    pub path: Name,
    pub function: Name,
    /// The cells stand in the rows of a Table, which does not describe the column.
    pub hidden: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameRule {
    DnsSubdomain,
    DnsLabel,
    Dns1035Label,
    PathSegment,
    /// A DNS subdomain by the format `k8s-long-name`, whose length is told in bytes.
    LongName,
    /// Whatever fits into a path, which is looked at by itself.
    Any,
}

/// Why a hand-written conversion refuses a message, and what of it. Code that names no field returns a text, which
/// stands for the whole message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConversionFault {
    /// JSON names from the object on: `spec.feet[2].size`; "" is the object itself.
    pub field: String,
    pub value: BadValue,
    pub reason: String,
}

impl ConversionFault {
    /// The field of this JSON name, in the message that is converted, has a value that the other version has no form
    /// for.
    pub fn invalid(field: &str, value: impl Into<BadValue>, reason: impl Into<String>) -> ConversionFault {
        ConversionFault {
            field: field.to_owned(),
            value: value.into(),
            reason: reason.into(),
        }
    }

    /// The same as seen from the message around it, which has this one in a field.
    #[must_use]
    pub fn below(mut self, field: &str) -> ConversionFault {
        self.field = match self.field.as_str() {
            "" => field.to_owned(),
            rest if rest.starts_with('[') => format!("{field}{rest}"),
            rest => format!("{field}.{rest}"),
        };
        self
    }

    /// As an item of a list or an entry of a map.
    #[must_use]
    pub fn below_item(self, item: impl std::fmt::Display) -> ConversionFault {
        self.below(&format!("[{item}]"))
    }
}

impl From<String> for ConversionFault {
    fn from(reason: String) -> ConversionFault {
        ConversionFault::invalid("", BadValue::Omitted, reason)
    }
}

impl From<&str> for ConversionFault {
    fn from(reason: &str) -> ConversionFault {
        reason.to_owned().into()
    }
}

/// A conversion that failed: which kind, and why.
#[derive(Debug, thiserror::Error)]
#[error("converting {from} to {to}: {}", Told(.fault))]
pub struct ConvertError {
    pub from: String,
    pub to: String,
    pub fault: Box<ConversionFault>,
}

struct Told<'a>(&'a ConversionFault);

impl std::fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.field.as_str() {
            "" => f.write_str(&self.0.reason),
            field => write!(f, "{field}: {}", self.0.reason),
        }
    }
}

impl ConvertError {
    /// A conversion of a `From` that failed.
    pub fn new<From: Kind + Default>(to: &str, fault: impl Into<ConversionFault>) -> ConvertError {
        ConvertError {
            from: From::default().gvk().to_string(),
            to: to.to_owned(),
            fault: Box::new(fault.into()),
        }
    }
}

/// The typed object of a conversion to `to`; an error if it is of another type.
pub fn downcast<T: Kind + Default>(object: Box<dyn Object>, to: &str) -> Result<T, ConvertError> {
    let found = object.gvk().clone();
    match Reflect::into_any(object as Box<dyn Reflect>).downcast::<T>() {
        Ok(typed) => Ok(*typed),
        Err(_) => Err(ConvertError::new::<T>(to, format!("the object is a {found}"))),
    }
}
