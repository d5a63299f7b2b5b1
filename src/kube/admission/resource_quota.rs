//! ResourceQuota: nobody uses more of a namespace than its quotas say.

mod amounts;
mod check;
mod claims;
mod configuration;
mod devices;
mod evaluator;
mod ledger;
mod pods;
mod services;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use keelson_access::lister::Listers;
use keelson_api::core::v1::{Pod, ResourceQuota as Quota};
use keelson_machinery::object::Kind;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, ConfigureError, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use keelson_registry::reservation::Reservation;
use keelson_registry::{Followed, Outcome, Verbs};

use check::{Refusal, Request, check, take};
use configuration::LimitedResource;
use evaluator::Evaluator;
use ledger::{Ledger, Receipt, Refused};

/// A quota that can't be written for so long is an error.
const PATIENCE: Duration = Duration::from_secs(10);

/// Resources that are not stored, and events, which have never been counted.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

pub struct ResourceQuota {
    quotas: Followed<Quota>,
    classes: devices::Classes,
    limited: OnceLock<Vec<LimitedResource>>,
    ledger: Ledger,
}

impl Default for ResourceQuota {
    fn default() -> Self {
        ResourceQuota {
            quotas: Followed::new(|object| object.downcast_ref::<Quota>().cloned()),
            classes: devices::Classes::default(),
            limited: OnceLock::new(),
            ledger: Ledger::default(),
        }
    }
}

impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let (group, plural) = (scope.group, scope.plural);
        let handled = matches!(
            (scope.operation, group, plural, scope.subresource),
            (Operation::Create, _, _, "")
                | (Operation::Update, "", "pods", "" | "resize")
                | (Operation::Update, "", "persistentvolumeclaims", "" | "status")
                | (Operation::Update, "", "services", "")
                | (Operation::Update, "resource.k8s.io", "resourceclaims", "")
        );
        Handles::VALIDATES.when(handled && scope.namespaced && !IGNORED.contains(&(group, plural)))
    }

    fn configure(&self, configuration: Option<&str>) -> Result<(), ConfigureError> {
        let limited = configuration::read(configuration)?;
        self.limited.get_or_init(|| limited);
        Ok(())
    }

    fn attach(&self, listers: &dyn Listers, verbs: &Arc<Verbs>) {
        self.quotas.attach(listers, "", "resourcequotas");
        self.classes
            .followed()
            .attach(listers, "resource.k8s.io", "deviceclasses");
        self.ledger.attach(verbs);
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let quotas = self.quotas.of_namespace(attributes.namespace());
        let limited = self.limited.get().map_or(&[][..], Vec::as_slice);
        let nothing_bounds = quotas.is_empty() && limited.is_empty();
        match attributes
            .object
            .as_deref()
            .filter(|_| !nothing_bounds && is_counted(attributes))
        {
            Some(object) => later(self.count(attributes, object, quotas, limited)),
            None => now(Ok(())),
        }
    }
}

/// A pod's own path changes nothing that counts, but for its scope.
fn is_counted(attributes: &Attributes<'_>) -> bool {
    match (attributes.typed::<Pod>(), attributes.old_typed::<Pod>()) {
        (Some(new), Some(old)) if attributes.subresource.is_empty() => {
            pods::is_terminating(new) != pods::is_terminating(old)
        }
        _ => true,
    }
}

impl ResourceQuota {
    async fn count(
        &self,
        attributes: &Attributes<'_>,
        object: &dyn Kind,
        quotas: Vec<Arc<Quota>>,
        limited: &[LimitedResource],
    ) -> Result<(), StatusError> {
        let resource = attributes.resource;
        let request = Request {
            group: &resource.group,
            plural: &resource.plural,
            object,
            old: attributes.old,
            now: attributes.context.now,
        };
        let evaluator = Evaluator::of(&resource.group, &resource.plural, &self.classes);
        let taken = check(&evaluator, &quotas, limited, &request).map_err(|refusal| match refusal {
            Refusal::Forbidden(why) => attributes.forbidden(why),
            Refusal::Other(why) => StatusError::unknown(why),
        })?;
        let is_bounded = attributes.subresource != "status";
        // What is refused in any case costs no write; what this says yes to is compared once more when it is taken.
        for one in &taken {
            let quota = quotas.iter().find(|quota| quota.metadata.name == one.quota);
            let left = quota.map_or(Ok(()), |quota| take(quota, &one.amounts, is_bounded).map(drop));
            left.map_err(|exceeded| attributes.forbidden(exceeded.to_string()))?;
        }
        if taken.is_empty() || attributes.dry_run() {
            return Ok(());
        }
        let ordered = self.ledger.take(attributes.namespace(), taken, is_bounded);
        let receipt = match tokio::time::timeout(PATIENCE, ordered).await {
            Ok(Ok(receipt)) => receipt,
            Ok(Err(Refused::Exceeded(why))) => return Err(attributes.forbidden(why)),
            Ok(Err(Refused::Failed(error))) => return Err(error),
            Err(_) => return Err(StatusError::internal_error("resource quota evaluation timed out")),
        };
        attributes.reserve(Box::new(Counted(receipt)));
        Ok(())
    }
}

/// What a write has taken.
struct Counted(Receipt);

impl Reservation for Counted {
    fn commit(self: Box<Self>) {
        self.0.keep();
    }
}
