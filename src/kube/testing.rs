//! Helpers of the unit tests of strategies.

use keelson_access::authz::Authorization;
use keelson_access::user::User;
use keelson_api::core::v1::Pod;
use keelson_machinery::defaults;
use keelson_machinery::field::ErrorList;
use keelson_machinery::json;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::time::Time;
use keelson_registry::managed::Tracking;
use keelson_registry::{Context, Warnings};

/// A request at a fixed time.
pub fn context() -> Context {
    Context {
        now: Time::from_unix(1_700_000_000, 0),
        namespace: "default".to_owned(),
        user: User::anonymous(),
        asked: Default::default(),
        verbs: None,
        authorization: Authorization::default(),
        dry_run: false,
        tracking: Tracking::default(),
        warnings: Warnings::default(),
        audit: None,
    }
}

/// An object from JSON, without defaults. Unknown fields fail the test.
pub fn read<T: Reflect + Default>(text: &str) -> T {
    let mut object = T::default();
    assert!(json::read(text.as_bytes(), &mut object).unwrap().is_empty(), "{text}");
    object
}

/// As [`read`], with the defaults of the definition.
pub fn read_defaulted<T: Reflect + Default>(text: &str) -> T {
    let mut object = read(text);
    defaults::apply(&mut object);
    object
}

/// JSON of an object.
pub fn text(object: &dyn Reflect) -> String {
    let mut out = Vec::new();
    json::write(object, &mut out);
    String::from_utf8(out).unwrap()
}

/// A pod with these annotations, on a node.
pub fn annotated_pod(annotations: &[(&str, &str)], node: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.annotations = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    pod.spec.node_name = node.to_owned();
    pod
}

/// One error a line.
pub fn lines(errors: &ErrorList) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
