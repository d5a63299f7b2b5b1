//! CustomResourceDefinition between v1beta1, the version that is stored, and the hub, v1.
//!
//! v1beta1 says what all versions share once, beside the list of versions: a schema, subresources, columns and
//! selectable fields move there when every version has the same, and back into every version on the way out.

use keelson_machinery::copy::copy_named;
use keelson_machinery::equality;
use keelson_machinery::reflect::{Field, Reflect};

use crate::apiextensions_k8s_io::{v1, v1beta1};

type Column = v1beta1::CustomResourceColumnDefinition;

/// What stands beside the versions goes into every one of them.
pub fn to_hub_custom_resource_definition_spec(
    from: &mut v1beta1::CustomResourceDefinitionSpec,
    to: &mut v1::CustomResourceDefinitionSpec,
) -> Result<(), String> {
    if to.versions.is_empty() && !from.version.is_empty() {
        to.versions.push(v1::CustomResourceDefinitionVersion {
            name: from.version.clone(),
            served: true,
            storage: true,
            ..Default::default()
        });
    }
    if let Some((last, others)) = to.versions.split_last_mut().filter(|_| from.validation.is_some()) {
        // Schemas can be large: one of them need not be copied.
        others
            .iter_mut()
            .for_each(|version| version.schema = from.validation.clone());
        last.schema = from.validation.take();
    }
    for version in &mut to.versions {
        if from.subresources.is_some() {
            version.subresources = from.subresources.clone();
        }
        if !from.additional_printer_columns.is_empty() {
            version.additional_printer_columns = from.additional_printer_columns.iter().map(column_to_hub).collect();
        }
        if !from.selectable_fields.is_empty() {
            version.selectable_fields = from.selectable_fields.clone();
        }
    }
    to.preserve_unknown_fields = from.preserve_unknown_fields.unwrap_or_default();
    Ok(())
}

/// What all versions have alike goes beside them; each of the four parts is looked at by itself.
pub fn from_hub_custom_resource_definition_spec(
    from: &v1::CustomResourceDefinitionSpec,
    to: &mut v1beta1::CustomResourceDefinitionSpec,
) -> Result<(), String> {
    to.preserve_unknown_fields = Some(from.preserve_unknown_fields);
    // They have moved.
    let Some((first, rest)) = to.versions.split_first_mut() else {
        return Ok(());
    };
    to.version.clone_from(&first.name);
    if rest.iter().all(|v| same(&v.schema, &first.schema)) {
        to.validation = first.schema.take();
        rest.iter_mut().for_each(|v| v.schema = None);
    }
    if rest.iter().all(|v| same(&v.subresources, &first.subresources)) {
        to.subresources = first.subresources.take();
        rest.iter_mut().for_each(|v| v.subresources = None);
    }
    let columns = &first.additional_printer_columns;
    if rest.iter().all(|v| same(&v.additional_printer_columns, columns)) {
        to.additional_printer_columns = std::mem::take(&mut first.additional_printer_columns);
        rest.iter_mut().for_each(|v| v.additional_printer_columns.clear());
    }
    if rest
        .iter()
        .all(|v| same(&v.selectable_fields, &first.selectable_fields))
    {
        to.selectable_fields = std::mem::take(&mut first.selectable_fields);
        rest.iter_mut().for_each(|v| v.selectable_fields.clear());
    }
    Ok(())
}

fn same<T: Field>(a: &T, b: &T) -> bool {
    equality::equal_values(a.value(), b.value())
}

fn column_to_hub(from: &Column) -> v1::CustomResourceColumnDefinition {
    let mut to = v1::CustomResourceColumnDefinition::default();
    copy_named(&mut to as &mut dyn Reflect, from);
    to.json_path = from.json_path.clone();
    to
}

/// The webhook and the versions of reviews that it takes stand side by side here.
pub fn to_hub_custom_resource_conversion(
    from: &v1beta1::CustomResourceConversion,
    to: &mut v1::CustomResourceConversion,
) -> Result<(), String> {
    if from.webhook_client_config.is_some() || !from.conversion_review_versions.is_empty() {
        to.webhook = Some(Box::new(v1::WebhookConversion {
            client_config: from.webhook_client_config.clone(),
            conversion_review_versions: from.conversion_review_versions.clone(),
        }));
    }
    Ok(())
}

/// The webhook and the versions of reviews that it takes stand side by side here.
pub fn from_hub_custom_resource_conversion(
    from: &v1::CustomResourceConversion,
    to: &mut v1beta1::CustomResourceConversion,
) -> Result<(), String> {
    if let Some(webhook) = from.webhook.as_deref() {
        to.webhook_client_config = webhook.client_config.clone();
        to.conversion_review_versions = webhook.conversion_review_versions.clone();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;
    use keelson_machinery::object::Object;
    use keelson_machinery::scheme::KindDesc;
    use serde_json::{Value, json};

    fn kind(version: &str) -> &'static KindDesc {
        let groups = crate::SCHEME.groups.iter();
        let versions = groups
            .filter(|g| g.name == "apiextensions.k8s.io")
            .flat_map(|g| g.versions);
        let mut kinds = versions.filter(|v| v.version == version).flat_map(|v| v.kinds);
        kinds.next().unwrap()
    }

    fn spec(object: &dyn Object) -> Value {
        let all: Value = serde_json::from_slice(&json::to_vec(object)).unwrap();
        all["spec"].clone()
    }

    /// The stored form of a v1 spec, which must lead back to the spec.
    fn stored(given: &Value) -> Value {
        let mut object = kind("v1").new_object();
        let text = json!({"spec": given}).to_string();
        assert_eq!(json::read(text.as_bytes(), object.as_reflect_mut()), Ok(vec![]));
        let stored = kind("v1beta1").from_hub(object).unwrap();
        let form = spec(&*stored);
        let back = kind("v1beta1").to_hub(stored).unwrap();
        assert_eq!(spec(&*back), *given);
        form
    }

    fn definition(versions: &Value) -> Value {
        json!({"group": "example.com", "names": {"plural": "as", "kind": "A"}, "scope": "Cluster", "versions": versions})
    }

    #[test]
    fn what_versions_share_is_stored_once() {
        let schema =
            json!({"openAPIV3Schema": {"type": "object", "items": [{"type": "a"}], "additionalProperties": true}});
        let columns = json!([{"name": "N", "type": "integer", "jsonPath": ".spec.n"}]);
        let one = json!({"name": "v1", "served": true, "storage": true, "schema": schema, "additionalPrinterColumns": columns});
        let two =
            json!({"name": "v2", "served": true, "storage": false, "schema": schema, "subresources": {"status": {}}});
        let form = stored(&definition(&json!([one, two])));
        assert_eq!(form["version"], "v1");
        assert_eq!(form["validation"], schema);
        assert_eq!(form["preserveUnknownFields"], false);
        let column = json!([{"name": "N", "type": "integer", "JSONPath": ".spec.n"}]);
        let versions = json!([
            {"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": column},
            {"name": "v2", "served": true, "storage": false, "subresources": {"status": {}}},
        ]);
        assert_eq!(form["versions"], versions);
        let form = stored(&definition(&json!([one])));
        assert_eq!(form["additionalPrinterColumns"], column);
        assert_eq!(
            form["versions"],
            json!([{"name": "v1", "served": true, "storage": true}])
        );
    }

    #[test]
    fn the_webhook_stands_beside_its_versions() {
        let mut given = definition(&json!([{"name": "v1", "served": true, "storage": true}]));
        given["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]},
        });
        let form = stored(&given);
        let expected = json!({
            "strategy": "Webhook", "webhookClientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"],
        });
        assert_eq!(form["conversion"], expected);
    }
}
