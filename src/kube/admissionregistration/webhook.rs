//! Configurations of admission webhooks.

use std::collections::HashSet;
use std::marker::PhantomData;

use keelson_admission::Expressions;
use keelson_api::admissionregistration_k8s_io::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use keelson_machinery::cel;
use keelson_machinery::field::ErrorList;
use keelson_machinery::meta::v1::LabelSelector;
use keelson_machinery::object::Object;
use keelson_machinery::validation::{names, webhook};
use keelson_registry::{Context, KindCode, LongValidation, MetadataChecks, RepeatedChecks, Strategy};

use super::rules;
use crate::cells;
use crate::faults::{self, Faults, Unique};
use crate::metadata;
use crate::typed::same_list;

/// kube-apiserver looks at what is called last.
const ORDER: [&str; 11] = [
    "name",
    "rules",
    "failurePolicy",
    "matchPolicy",
    "sideEffects",
    "timeoutSeconds",
    "namespaceSelector",
    "objectSelector",
    "reinvocationPolicy",
    "clientConfig",
    "matchConditions",
];
const CHECKS: MetadataChecks = metadata::any_finalizer(RepeatedChecks::WHOLE);
const ONE_ADDRESS: &str = "exactly one of url or service is required";
/// Versions of reviews that webhooks are asked with.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
/// What webhooks may do beside their answer, and what those may that are older than the bound.
const EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const ANY_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

/// Registers the rules of both kinds.
pub fn register(code: &mut KindCode) {
    code.kind::<MutatingWebhookConfiguration>()
        .strategy(Webhooks::<MutatingWebhookConfiguration>(PhantomData))
        .metadata_checks(CHECKS)
        .cells(cells::admission::MUTATING_WEBHOOK_CONFIGURATION);
    code.kind::<ValidatingWebhookConfiguration>()
        .strategy(Webhooks::<ValidatingWebhookConfiguration>(PhantomData))
        .metadata_checks(CHECKS)
        .cells(cells::admission::VALIDATING_WEBHOOK_CONFIGURATION);
}

/// The rules of both kinds.
struct Webhooks<C>(PhantomData<fn() -> C>);

/// A kind that has webhooks.
trait Configuration: Object {
    type Webhook: Clone + Send + 'static;

    fn webhooks(&self) -> &[Self::Webhook];
}

impl Configuration for MutatingWebhookConfiguration {
    type Webhook = MutatingWebhook;

    fn webhooks(&self) -> &[MutatingWebhook] {
        &self.webhooks
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    type Webhook = ValidatingWebhook;

    fn webhooks(&self) -> &[ValidatingWebhook] {
        &self.webhooks
    }
}

impl<C: Configuration> Strategy for Webhooks<C>
where
    for<'a> Hook<'a>: From<&'a C::Webhook>,
{
    type Object = C;

    fn order_of_fields(&self) -> &'static [&'static str] {
        &ORDER
    }

    fn warnings(&self, new: &C, _old: Option<&C>) -> Vec<String> {
        rules::reserved_name(new.meta())
    }

    fn validate(&self, _context: &Context, new: &C, old: Option<&C>) -> ErrorList {
        check(&hooks(new.webhooks()), old.map(|old| hooks(old.webhooks())).as_deref())
    }

    fn long_validation(&self, new: &C, old: Option<&C>) -> Option<LongValidation> {
        long(new.webhooks(), old.map(C::webhooks))
    }
}

/// What both kinds of webhooks say.
struct Hook<'a> {
    name: &'a str,
    rules: &'a [RuleWithOperations],
    side_effects: Option<&'a str>,
    timeout_seconds: Option<i32>,
    selectors: [(&'static str, Option<&'a LabelSelector>); 2],
    client_config: &'a WebhookClientConfig,
    review_versions: &'a [String],
    conditions: &'a [MatchCondition],
}

/// Both types of the API have these fields.
macro_rules! hook_of {
    ($($webhook:ty),*) => {$(
        impl<'a> From<&'a $webhook> for Hook<'a> {
            fn from(hook: &'a $webhook) -> Hook<'a> {
                Hook {
                    name: &hook.name,
                    rules: &hook.rules,
                    side_effects: hook.side_effects.as_deref(),
                    timeout_seconds: hook.timeout_seconds,
                    selectors: [
                        ("namespaceSelector", hook.namespace_selector.as_deref()),
                        ("objectSelector", hook.object_selector.as_deref()),
                    ],
                    client_config: &hook.client_config,
                    review_versions: &hook.admission_review_versions,
                    conditions: &hook.match_conditions,
                }
            }
        }
    )*};
}
hook_of!(MutatingWebhook, ValidatingWebhook);

fn hooks<'a, W>(all: &'a [W]) -> Vec<Hook<'a>>
where
    Hook<'a>: From<&'a W>,
{
    all.iter().map(Hook::from).collect()
}

impl Hook<'_> {
    fn has_known_review(&self) -> bool {
        self.review_versions
            .iter()
            .any(|version| REVIEWS.contains(&version.as_str()))
    }

    fn has_bad_selectors(&self) -> bool {
        let mut selectors = self.selectors.iter();
        selectors.any(|(_, selector)| faults::are_in(|f| f.selector("", *selector)))
    }
}

/// What is let through since it was before.
#[derive(Default)]
struct Stored {
    effects: bool,
    unknown_reviews: bool,
    repeated_names: bool,
    bad_values: bool,
    same_conditions: bool,
}

impl Stored {
    fn of(new: &[Hook<'_>], old: &[Hook<'_>]) -> Stored {
        let mut names = HashSet::new();
        let pairs = || new.iter().zip(old);
        Stored {
            effects: old
                .iter()
                .any(|hook| !hook.side_effects.is_some_and(|effects| EFFECTS.contains(&effects))),
            unknown_reviews: old
                .iter()
                .any(|hook| !hook.review_versions.is_empty() && !hook.has_known_review()),
            repeated_names: old.iter().any(|hook| !names.insert(hook.name)),
            bad_values: old.iter().any(Hook::has_bad_selectors),
            same_conditions: new.len() == old.len() && pairs().all(|(a, b)| same_list(a.conditions, b.conditions)),
        }
    }
}

/// The validation of webhooks on a thread for such work, where they have many conditions.
fn long<W>(new: &[W], old: Option<&[W]>) -> Option<LongValidation>
where
    W: Clone + Send + 'static,
    for<'a> Hook<'a>: From<&'a W>,
{
    let conditions: usize = hooks(new).iter().map(|hook| hook.conditions.len()).sum();
    rules::long_validation(conditions, new, old, |new, old| {
        check(&hooks(new), old.map(hooks).as_deref())
    })
}

fn check(hooks: &[Hook<'_>], old: Option<&[Hook<'_>]>) -> ErrorList {
    match hooks.iter().any(|hook| !hook.conditions.is_empty()) {
        true => cel::many(|| faults_of(hooks, old)),
        false => faults_of(hooks, old),
    }
}

fn faults_of(hooks: &[Hook<'_>], old: Option<&[Hook<'_>]>) -> ErrorList {
    let stored = old.map_or_else(Stored::default, |old| Stored::of(hooks, old));
    let mut names = Unique::default();
    let expressions = Expressions::of_webhook();
    faults::of_object(|f| {
        f.each("webhooks", hooks, |f, hook| {
            of_hook(f, hook, &stored, &expressions);
            reviews(&mut f.at("admissionReviewVersions"), hook, &stored);
            if !stored.repeated_names && !hook.name.is_empty() {
                names.check(&mut f.at("name"), hook.name);
            }
        });
    })
}

fn of_hook(f: &mut Faults<'_>, hook: &Hook<'_>, stored: &Stored, expressions: &Expressions) {
    f.at("name").qualified_domain(hook.name);
    f.each("rules", hook.rules, rules::rule);
    let known = if stored.effects { &ANY_EFFECTS[..] } else { &EFFECTS };
    match hook.side_effects {
        None => f
            .at("sideEffects")
            .required(format!("must specify one of {}", known.join(", "))),
        Some(effects) => f.at("sideEffects").one_of(effects, known),
    }
    if let Some(seconds) = hook.timeout_seconds.filter(|seconds| !(1..=30).contains(seconds)) {
        f.at("timeoutSeconds")
            .invalid(seconds, "the timeout value must be between 1 and 30 seconds");
    }
    for (name, selector) in &hook.selectors {
        f.selector_as_stored(name, *selector, stored.bad_values);
    }
    address(&mut f.at("clientConfig"), hook.client_config);
    if !stored.same_conditions {
        rules::conditions(f, hook.conditions, expressions);
    }
}

/// Where a webhook is.
fn address(f: &mut Faults<'_>, config: &WebhookClientConfig) {
    let faults = match (config.url.as_deref(), config.service.as_deref()) {
        (Some(url), None) => webhook::url(url, &f.at("url").path()),
        (None, Some(service)) => {
            let names = (service.namespace.as_str(), service.name.as_str());
            let (port, path) = (service.port.unwrap_or_default(), service.path.as_deref());
            webhook::service(names, port, path, &f.at("service").path())
        }
        _ => return f.required(ONE_ADDRESS),
    };
    f.extend(faults);
}

fn reviews(f: &mut Faults<'_>, hook: &Hook<'_>, stored: &Stored) {
    let versions = hook.review_versions;
    if versions.is_empty() {
        return f.required(format!("must specify one of {}", REVIEWS.join(", ")));
    }
    let mut seen = Unique::default();
    for (place, version) in versions.iter().enumerate() {
        let mut f = f.index(place);
        if seen.has(version) {
            f.invalid(version, "duplicate version");
            continue;
        }
        seen.check(&mut f, version);
        f.texts(version, names::dns_1035_label(version));
    }
    if !hook.has_known_review() && !stored.unknown_reviews {
        f.invalid(versions, format!("must include at least one of {}", REVIEWS.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    const RULES: Webhooks<ValidatingWebhookConfiguration> = Webhooks(PhantomData);

    const GOOD: &str =
        r#""name":"a.b.c","sideEffects":"None","admissionReviewVersions":["v1"],"clientConfig":{"url":"https://a/b"}"#;

    fn configuration(hooks: &[String]) -> ValidatingWebhookConfiguration {
        let hooks: Vec<String> = hooks.iter().map(|hook| format!("{{{hook}}}")).collect();
        read(&format!(r#"{{"webhooks":[{}]}}"#, hooks.join(",")))
    }

    fn fields(found: &ErrorList) -> String {
        let found = lines(found);
        let fields: Vec<&str> = found.lines().filter_map(|line| line.split(": ").next()).collect();
        fields.join(" ").replace("webhooks[0].", "")
    }

    #[test]
    fn webhooks_say_where_they_are() {
        for (from, to, expected) in [
            ("", "", ""),
            ("a.b.c", "a.b", "name"),
            (r#","sideEffects":"None""#, "", "sideEffects"),
            (r#""None""#, r#""Some""#, "sideEffects"),
            (
                r#"["v1"]"#,
                r#"["v2","v2"]"#,
                "admissionReviewVersions[1] admissionReviewVersions",
            ),
            (r#"["v1"]"#, "[]", "admissionReviewVersions"),
            (r#"{"url":"https://a/b"}"#, "{}", "clientConfig"),
            ("https", "http", "clientConfig.url"),
            (
                r#""url":"https://a/b""#,
                r#""service":{"name":"s","port":0}"#,
                "clientConfig.service.name clientConfig.service.port",
            ),
            (r#""name""#, r#""timeoutSeconds":31,"name""#, "timeoutSeconds"),
        ] {
            let hook = GOOD.replacen(from, to, usize::from(!from.is_empty()));
            let found = RULES.validate(&context(), &configuration(std::slice::from_ref(&hook)), None);
            assert_eq!(fields(&found), expected, "{hook}");
        }
    }

    #[test]
    fn what_is_stored_stays() {
        let bad = GOOD.replace(r#""None""#, r#""Some""#).replace(r#"["v1"]"#, r#"["v2"]"#);
        let old = configuration(&[bad.clone(), bad]);
        assert_eq!(RULES.validate(&context(), &old, None).len(), 5);
        assert_eq!(lines(&RULES.validate(&context(), &old, Some(&old))), "");
    }
}
