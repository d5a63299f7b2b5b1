//! Criteria: the requests that a policy, or a binding, means.

use keelson_api::admissionregistration_k8s_io::v1::MatchResources;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Attributes;

use crate::matching::{Rule, Rules, Selectors};
use crate::namespaces::Namespaces;

/// What MatchResources says.
pub(super) struct Criteria {
    pub rules: Rules,
    selectors: Selectors,
}

impl Criteria {
    pub fn new(resources: &MatchResources) -> Criteria {
        let rules = |rules: &[_]| rules.iter().map(Rule::named).collect::<Vec<_>>();
        let include = rules(&resources.resource_rules);
        Criteria {
            rules: Rules {
                include: (!include.is_empty()).then_some(include),
                exclude: rules(&resources.exclude_resource_rules),
                equivalent: resources.match_policy.as_deref() == Some("Equivalent"),
            },
            selectors: Selectors::new(
                resources.namespace_selector.as_deref(),
                resources.object_selector.as_deref(),
            ),
        }
    }

    /// Whether the selectors select what a request is about.
    ///
    /// # Errors
    /// It can't be told.
    pub async fn select(&self, attributes: &Attributes<'_>, namespaces: &Namespaces) -> Result<bool, StatusError> {
        self.selectors.select(attributes, namespaces).await
    }
}
