//! The descriptions of the built-in kinds, taken from `k8s-openapi` at build time, so that no documentation text of
//! Kubernetes lies in this repository.
//!
//! Keys are names of OpenAPI definitions (`io.k8s.api.core.v1.Pod`). What `k8s-openapi` lacks has a line of our own.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::version;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

mod kinds;
mod own;

/// What a definition says of itself and, by JSON name, of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Empty: none.
    pub text: String,
    pub fields: BTreeMap<String, String>,
}

/// Descriptions of every built-in definition, by the definition's name.
pub fn builtin() -> BTreeMap<String, Description> {
    let mut generator = SchemaSettings::default().into_generator();
    add_roots(&mut generator);
    let mut all: BTreeMap<String, Description> = generator
        .definitions()
        .iter()
        .map(|(name, schema)| (name.clone(), describe(schema)))
        .collect();
    own::add(&mut all);
    all
}

/// Registers the kinds; everything that they refer to comes along.
fn add_roots(generator: &mut SchemaGenerator) {
    kinds::add(generator);
    root::<meta::APIGroup>(generator);
    root::<meta::APIGroupList>(generator);
    root::<meta::APIResourceList>(generator);
    root::<meta::APIVersions>(generator);
    root::<meta::Condition>(generator);
    root::<meta::DeleteOptions>(generator);
    root::<meta::LabelSelector>(generator);
    root::<meta::ListMeta>(generator);
    root::<meta::MicroTime>(generator);
    root::<meta::ObjectMeta>(generator);
    root::<meta::Patch>(generator);
    root::<meta::Status>(generator);
    root::<RawExtension>(generator);
    root::<version::Info>(generator);
}

fn root<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

fn describe(schema: &Value) -> Description {
    let text = |v: Option<&Value>| v.and_then(Value::as_str).unwrap_or_default().to_owned();
    let fields = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, field)| (name.clone(), text(field.get("description"))))
        .filter(|(_, text)| !text.is_empty())
        .collect();
    Description {
        text: text(schema.get("description")),
        fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_comes_with_everything_it_refers_to() {
        let all = builtin();
        assert!(all["io.k8s.api.apps.v1.Deployment"].fields.contains_key("spec"));
        assert!(!all["io.k8s.api.core.v1.Container"].fields["image"].is_empty());
        assert!(!all["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].fields["labels"].is_empty());
    }

    #[test]
    fn list_kinds_have_a_line() {
        let all = builtin();
        let pods = &all["io.k8s.api.core.v1.PodList"];
        assert_eq!(pods.text, "A list of Pod objects.");
        assert_eq!(
            pods.fields.keys().collect::<Vec<_>>(),
            ["apiVersion", "items", "kind", "metadata"]
        );
    }
}
