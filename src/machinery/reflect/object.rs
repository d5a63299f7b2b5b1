//! Objects: messages with `apiVersion`, `kind` and `metadata`.

use std::fmt;

use crate::meta::v1::ObjectMeta;
use crate::reflect::{Name, Reflect};

/// Group, version and kind. The legacy group is "".
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct Gvk {
    pub group: Name,
    pub version: Name,
    pub kind: Name,
}

impl Gvk {
    pub fn new(group: impl Into<Name>, version: impl Into<Name>, kind: impl Into<Name>) -> Gvk {
        Gvk {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// One that the program knows.
    pub const fn new_static(group: &'static str, version: &'static str, kind: &'static str) -> Gvk {
        Gvk {
            group: Name::new_static(group),
            version: Name::new_static(version),
            kind: Name::new_static(kind),
        }
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", api_version(&self.group, &self.version), self.kind)
    }
}

/// `v1` for the legacy group, else `group/version`.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// Why a type that nobody knows can't be decoded, in kube-apiserver's words.
pub fn not_registered(kind: &str, api_version: &str) -> String {
    format!("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")
}

/// A message that is a kind: it is written with `kind` and `apiVersion` in front.
pub trait Kind: Reflect {
    fn gvk(&self) -> &Gvk;
    /// Upcast; every kind is a message.
    fn as_reflect(&self) -> &dyn Reflect;
    fn as_reflect_mut(&mut self) -> &mut dyn Reflect;
}

/// A kind with object metadata: what the store keeps.
pub trait Object: Kind {
    fn meta(&self) -> &ObjectMeta;
    fn meta_mut(&mut self) -> &mut ObjectMeta;
    fn clone_object(&self) -> Box<dyn Object>;
}

impl dyn Object {
    /// The typed object, if it is a `T`.
    pub fn downcast_ref<T: Reflect>(&self) -> Option<&T> {
        self.as_any().downcast_ref()
    }
    /// The typed object, if it is a `T`.
    pub fn downcast_mut<T: Reflect>(&mut self) -> Option<&mut T> {
        self.as_any_mut().downcast_mut()
    }
}

/// Version of the group `meta.k8s.io`: of Tables and of metadata alone, as clients ask for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`, the same in other words.
    V1beta1,
}

impl MetaVersion {
    /// As objects show it.
    pub const fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}
