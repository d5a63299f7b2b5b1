//! Conversion: the webhook that is asked, and the reviews that it knows.

use std::collections::HashSet;

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceConversion, WebhookClientConfig, WebhookConversion};
use keelson_machinery::field::text::json_list;
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_machinery::validation::names::dns_1035_label;

use super::webhook;

const STRATEGIES: [&str; 2] = ["None", "Webhook"];
/// Versions of reviews, of which a webhook has to know one.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What of a change is not asked for, since it was not before.
#[derive(Clone, Copy)]
pub struct Lenience {
    /// The webhook need not know a review that is sent.
    pub any_review: bool,
    /// The certificates of its authority may be none.
    pub any_ca_bundle: bool,
}

/// Faults of a conversion.
pub fn faults(conversion: &CustomResourceConversion, lenience: Lenience, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let strategy = path.child("strategy");
    match conversion.strategy.as_str() {
        "" => errors.push(FieldError::required(&strategy, "")),
        known if STRATEGIES.contains(&known) => {}
        other => errors.push(FieldError::not_supported(&strategy, other, &STRATEGIES)),
    }
    let webhook = conversion.webhook.as_deref();
    if conversion.strategy == "Webhook" {
        errors.extend(webhook_faults(webhook, lenience, path));
        return errors;
    }
    let text = "should not be set when strategy is not set to Webhook";
    if webhook.is_some_and(|webhook| webhook.client_config.is_some()) {
        errors.push(FieldError::forbidden(&path.child("webhookClientConfig"), text));
    }
    if webhook.is_some_and(|webhook| !webhook.conversion_review_versions.is_empty()) {
        errors.push(FieldError::forbidden(&path.child("conversionReviewVersions"), text));
    }
    errors
}

fn webhook_faults(webhook: Option<&WebhookConversion>, lenience: Lenience, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let config = path.child("webhookClientConfig");
    match webhook.and_then(|webhook| webhook.client_config.as_deref()) {
        None => errors.push(FieldError::required(
            &config,
            "required when strategy is set to Webhook",
        )),
        Some(client) => errors.extend(client_faults(client, lenience, &config)),
    }
    let versions = webhook.map_or(&[][..], |webhook| &webhook.conversion_review_versions);
    errors.extend(review_versions(
        versions,
        lenience.any_review,
        &path.child("conversionReviewVersions"),
    ));
    errors
}

fn client_faults(client: &WebhookClientConfig, lenience: Lenience, path: &Path) -> ErrorList {
    let mut errors = match (&client.url, &client.service) {
        (Some(url), None) => webhook::url(url, &path.child("url")),
        (None, Some(service)) => webhook::service(service, &path.child("service")),
        _ => FieldError::required(path, "exactly one of url or service is required").into(),
    };
    if !client.ca_bundle.is_empty() && !lenience.any_ca_bundle {
        errors.extend(webhook::ca_bundle(&client.ca_bundle, &path.child("caBundle")));
    }
    errors
}

fn review_versions(versions: &[String], any: bool, path: &Path) -> ErrorList {
    if versions.is_empty() {
        return FieldError::required(path, "").into();
    }
    let (mut errors, mut seen) = (ErrorList::new(), HashSet::new());
    for (place, version) in versions.iter().enumerate() {
        let path = path.index(place);
        if !seen.insert(version) {
            errors.push(FieldError::invalid(&path, version, "duplicate version"));
            continue;
        }
        let faults = dns_1035_label(version);
        errors.extend(faults.into_iter().map(|text| FieldError::invalid(&path, version, text)));
    }
    if !any && !knows_review(versions) {
        let shown = BadValue::json(json_list(versions.iter().map(String::as_str)));
        let text = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, shown, text));
    }
    errors
}

/// Whether one of these versions of a review is sent.
fn knows_review(versions: &[String]) -> bool {
    versions
        .iter()
        .any(|version| REVIEW_VERSIONS.contains(&version.as_str()))
}

/// What of a change is not asked for: what the stored definition does not have either. `established`: it was.
pub fn lenience(old: Option<&CustomResourceConversion>, established: bool) -> Lenience {
    let webhook = old.and_then(|old| old.webhook.as_deref());
    let versions = webhook.map_or(&[][..], |webhook| &webhook.conversion_review_versions);
    let client = webhook.and_then(|webhook| webhook.client_config.as_deref());
    let bundle = client
        .map(|client| &client.ca_bundle)
        .filter(|bundle| !bundle.is_empty());
    let is_wrong = |bundle: &&bytes::Bytes| !webhook::ca_bundle(bundle, &Path::root()).is_empty();
    Lenience {
        any_review: old.is_some() && !versions.is_empty() && !knows_review(versions),
        any_ca_bundle: !established || bundle.as_ref().is_some_and(is_wrong),
    }
}
