//! A webhook as its configuration says it, made ready to be asked.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use keelson_api::admissionregistration_k8s_io::v1::{
    MatchCondition, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
    WebhookClientConfig as Written,
};
use keelson_machinery::meta::v1::LabelSelector;
use keelson_machinery::object::Object;
use keelson_machinery::scheme::KindRef;
use keelson_net::client::{ServicePort, Webhook, WebhookAddress, WebhookClientConfig};

use super::clients::ClientError;
use super::review::ReviewVersion;
use crate::expressions::{Conditions, authorizing};
use crate::matching::{Asked, Outcome, Rule, Ruled, Rules, Selectors};

/// The port of services that is called where none is said.
const PORT: u16 = 443;

/// Whether a webhook has effects beside its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SideEffects {
    /// It does not say.
    Unsaid,
    /// None where nothing is stored.
    NoneOnDryRun,
    /// It may have.
    Some,
}

/// A webhook of a configuration.
pub(super) struct Hook {
    /// No other webhook has the same.
    pub uid: String,
    pub name: String,
    /// The name of the configuration.
    pub configuration: String,
    rules: Rules,
    pub selectors: Selectors,
    pub conditions: Conditions,
    /// A call that fails lets the request pass.
    pub fails_open: bool,
    pub side_effects: SideEffects,
    /// `None`: it takes none that is known.
    pub review: Option<ReviewVersion>,
    /// For one call.
    pub timeout: Option<Duration>,
    /// It is called again when others have changed what it saw.
    pub is_reinvoked: bool,
    /// `None`: it says neither a URL nor a service.
    pub address: Option<WebhookClientConfig>,
    /// Made when it is called first.
    pub client: OnceLock<Result<Webhook, ClientError>>,
}

impl Ruled for Hook {
    type Outcome = Outcome;

    fn outcome(&self, asked: &Asked<'_>, own: &KindRef, others: &[KindRef]) -> Option<Outcome> {
        self.rules.outcome(asked, own, others)
    }
}

/// What both kinds of webhooks say.
struct Said<'a> {
    name: &'a str,
    rules: &'a [RuleWithOperations],
    failure_policy: Option<&'a str>,
    match_policy: Option<&'a str>,
    namespace_selector: Option<&'a LabelSelector>,
    object_selector: Option<&'a LabelSelector>,
    side_effects: Option<&'a str>,
    timeout_seconds: Option<i32>,
    review_versions: &'a [String],
    conditions: &'a [MatchCondition],
    client_config: &'a Written,
    reinvocation_policy: Option<&'a str>,
}

fn seconds(seconds: i32) -> Option<Duration> {
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

impl Said<'_> {
    fn hook(self, configuration: &str, uid: String) -> Hook {
        Hook {
            uid,
            name: self.name.to_owned(),
            configuration: configuration.to_owned(),
            rules: Rules {
                include: Some(self.rules.iter().map(Rule::new).collect()),
                exclude: Vec::new(),
                equivalent: self.match_policy == Some("Equivalent"),
            },
            selectors: Selectors::new(self.namespace_selector, self.object_selector),
            conditions: Conditions::new(self.conditions, &authorizing()),
            fails_open: self.failure_policy == Some("Ignore"),
            side_effects: match self.side_effects {
                None => SideEffects::Unsaid,
                Some("None" | "NoneOnDryRun") => SideEffects::NoneOnDryRun,
                Some(_) => SideEffects::Some,
            },
            review: ReviewVersion::first_of(self.review_versions),
            timeout: self.timeout_seconds.and_then(seconds),
            is_reinvoked: self.reinvocation_policy == Some("IfNeeded"),
            address: address(self.client_config),
            client: OnceLock::new(),
        }
    }
}

fn address(written: &Written) -> Option<WebhookClientConfig> {
    let address = match (&written.service, &written.url) {
        (Some(service), _) => {
            let port = service.port.and_then(|port| u16::try_from(port).ok());
            let service_port = ServicePort {
                namespace: service.namespace.clone(),
                name: service.name.clone(),
                port: port.filter(|port| *port != 0).unwrap_or(PORT),
            };
            WebhookAddress::Service(service_port, service.path.clone().unwrap_or_default())
        }
        (None, Some(url)) => WebhookAddress::Url(url.clone()),
        (None, None) => return None,
    };
    Some(WebhookClientConfig {
        address,
        ca_bundle: written.ca_bundle.to_vec(),
    })
}

/// The webhooks of one configuration, in their order.
pub(super) type Hooks = Vec<Arc<Hook>>;

/// Gives each webhook a uid: webhooks of one name are told apart by their number.
fn hooks<'a>(configuration: &str, all: impl Iterator<Item = Said<'a>>) -> Hooks {
    let mut names: Vec<&str> = Vec::new();
    let hooks = all.map(|said| {
        let number = names.iter().filter(|name| **name == said.name).count();
        names.push(said.name);
        let uid = format!("{configuration}/{}/{number}", said.name);
        Arc::new(said.hook(configuration, uid))
    });
    hooks.collect()
}

/// What a webhook says: both types of the API have these fields, one of them another.
macro_rules! said {
    ($hook:ident, $reinvocation_policy:expr) => {
        Said {
            name: &$hook.name,
            rules: &$hook.rules,
            failure_policy: $hook.failure_policy.as_deref(),
            match_policy: $hook.match_policy.as_deref(),
            namespace_selector: $hook.namespace_selector.as_deref(),
            object_selector: $hook.object_selector.as_deref(),
            side_effects: $hook.side_effects.as_deref(),
            timeout_seconds: $hook.timeout_seconds,
            review_versions: &$hook.admission_review_versions,
            conditions: &$hook.match_conditions,
            client_config: &$hook.client_config,
            reinvocation_policy: $reinvocation_policy,
        }
    };
}

/// Those of a MutatingWebhookConfiguration.
pub(super) fn mutating(object: &dyn Object) -> Option<Hooks> {
    let configuration: &MutatingWebhookConfiguration = object.downcast_ref()?;
    let all = configuration.webhooks.iter();
    let said = all.map(|hook| said!(hook, hook.reinvocation_policy.as_deref()));
    Some(hooks(&configuration.metadata.name, said))
}

/// Those of a ValidatingWebhookConfiguration.
pub(super) fn validating(object: &dyn Object) -> Option<Hooks> {
    let configuration: &ValidatingWebhookConfiguration = object.downcast_ref()?;
    let said = configuration.webhooks.iter().map(|hook| said!(hook, None));
    Some(hooks(&configuration.metadata.name, said))
}
