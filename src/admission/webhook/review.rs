//! The AdmissionReview that a webhook is sent.

use keelson_access::user::User;
use keelson_machinery::json;
use keelson_machinery::json::write_string;
use keelson_machinery::object::Gvk;
use keelson_machinery::scheme::KindDesc;
use keelson_registry::admission::Attributes;

use crate::options;
use crate::versions::{Shown, Versioned, kind_of};

/// A version of the review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReviewVersion {
    V1,
    V1beta1,
}

impl ReviewVersion {
    /// The first of these versions that is known.
    pub fn first_of(versions: &[String]) -> Option<ReviewVersion> {
        versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        })
    }

    pub fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "admission.k8s.io/v1",
            ReviewVersion::V1beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// What a review asks about.
pub(super) struct Question<'a> {
    pub uid: &'a str,
    pub attributes: &'a Attributes<'a>,
    /// As the webhook sees the objects.
    pub versioned: &'a Versioned<'a>,
    /// The kind of the resource as which it sees them.
    pub target: &'a KindDesc,
}

/// Text in the making, with the members of one object after another.
struct Writer {
    out: Vec<u8>,
    first: bool,
}

impl Writer {
    fn key(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        write_string(name, &mut self.out);
        self.out.push(b':');
    }

    fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        write_string(value, &mut self.out);
    }

    /// A text that is left out where it is empty.
    fn told(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.text(name, value);
        }
    }

    fn raw(&mut self, name: &str, json: &[u8]) {
        self.key(name);
        self.out.extend_from_slice(json);
    }

    fn object(&mut self, name: &str, members: impl FnOnce(&mut Writer)) {
        self.key(name);
        self.out.push(b'{');
        self.first = true;
        members(self);
        self.out.push(b'}');
        self.first = false;
    }

    fn texts(&mut self, name: &str, values: &[String]) {
        self.key(name);
        for (n, value) in values.iter().enumerate() {
            self.out.push(if n == 0 { b'[' } else { b',' });
            write_string(value, &mut self.out);
        }
        self.out.extend_from_slice(if values.is_empty() { b"[]" } else { b"]" });
    }

    fn kind(&mut self, name: &str, kind: &Gvk) {
        self.object(name, |to| {
            to.text("group", &kind.group);
            to.text("version", &kind.version);
            to.text("kind", &kind.kind);
        });
    }

    fn resource(&mut self, name: &str, kind: &KindDesc) {
        self.object(name, |to| {
            to.text("group", &kind.group);
            to.text("version", &kind.version);
            to.text("resource", &kind.plural);
        });
    }

    fn user(&mut self, name: &str, user: &User) {
        self.object(name, |to| {
            to.told("username", &user.name);
            to.told("uid", &user.uid);
            if !user.groups.is_empty() {
                to.texts("groups", &user.groups);
            }
            if !user.extra.is_empty() {
                to.object("extra", |to| {
                    user.extra.iter().for_each(|(key, values)| to.texts(key, values));
                });
            }
        });
    }

    fn shown(&mut self, name: &str, shown: Option<&Shown<'_>>) {
        self.key(name);
        match shown {
            Some(shown) => json::write_kind(shown.kind(), &mut self.out),
            None => self.out.extend_from_slice(b"null"),
        }
    }
}

impl Question<'_> {
    /// The body of the request, in the order in which kube-apiserver writes it.
    pub fn body(&self, version: ReviewVersion) -> Vec<u8> {
        let mut to = Writer {
            out: Vec::with_capacity(2048),
            first: true,
        };
        to.out.push(b'{');
        to.text("kind", "AdmissionReview");
        to.text("apiVersion", version.api_version());
        to.object("request", |to| self.request(to));
        to.out.extend_from_slice(b"}\n");
        to.out
    }

    fn request(&self, to: &mut Writer) {
        let attributes = self.attributes;
        let subresource = attributes.subresource;
        to.text("uid", self.uid);
        to.kind("kind", &self.versioned.gvk);
        to.resource("resource", self.target);
        to.told("subResource", subresource);
        to.kind("requestKind", &kind_of(attributes.kind, subresource));
        to.resource("requestResource", attributes.kind);
        to.told("requestSubResource", subresource);
        to.told("name", attributes.requested_name());
        to.told("namespace", attributes.requested_namespace());
        to.text("operation", attributes.operation.word());
        to.user("userInfo", attributes.user());
        to.shown("object", self.versioned.object.as_ref());
        to.shown("oldObject", self.versioned.old.as_ref());
        to.raw("dryRun", if attributes.dry_run() { b"true" } else { b"false" });
        let options = options::text(attributes.operation, attributes.options, attributes.dry_run());
        to.raw("options", &options);
    }
}
