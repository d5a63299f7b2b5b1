//! The ServiceCIDR of the ranges that the command line gives, which is kept there.

use std::rc::Rc;
use std::time::Duration;

use keelson_api::networking_k8s_io::v1::{ServiceCIDR, ServiceCIDRSpec};
use keelson_machinery::meta::v1::ObjectMeta;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_server::server::{HookContext, HookError};
use serde_json::json;
use tokio::sync::oneshot;

use super::maker::{Maker, Wanted, retried};
use super::{MANAGER, Setting};
use crate::typed::typed;

const GROUP: &str = "networking.k8s.io";
const PLURAL: &str = "servicecidrs";
const NAME: &str = "kubernetes";
/// Owns the status.
const CONTROLLER: &str = "kubernetes-service-cidr-controller";
/// How often it is looked at again.
const PERIOD: Duration = Duration::from_secs(10);

/// Makes it, says so, and goes on looking after it.
pub(super) async fn run(
    context: HookContext,
    setting: Rc<Setting>,
    made: oneshot::Sender<()>,
) -> Result<(), HookError> {
    let wanted = Wanted {
        group: GROUP,
        plural: PLURAL,
        object: Box::new(range(&setting)),
        reconcile: with_second_family,
    };
    let all = [wanted];
    Maker {
        context: &context,
        manager: MANAGER,
    }
    .make_all(&all)
    .await?;
    retried(|| Box::pin(settle(&context, &all))).await?;
    // Nobody may be waiting.
    let _ = made.send(());
    let context = context.clone();
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(PERIOD).await;
            if let Err(error) = settle(&context, &all).await {
                tracing::warn!(%error, "the range of services could not be looked after; it is tried again");
            }
        }
    });
    Ok(())
}

fn range(setting: &Setting) -> ServiceCIDR {
    ServiceCIDR {
        metadata: ObjectMeta {
            name: NAME.to_owned(),
            ..ObjectMeta::default()
        },
        spec: ServiceCIDRSpec {
            cidrs: setting.service_ranges.iter().map(|(cidr, _)| cidr.clone()).collect(),
        },
        ..ServiceCIDR::default()
    }
}

/// A range of one family gets the second beside it; another range than that of the command line stays.
fn with_second_family(stored: &dyn Object, wanted: &dyn Object) -> Option<Box<dyn Object>> {
    let (stored, wanted) = (typed::<ServiceCIDR>(stored)?, typed::<ServiceCIDR>(wanted)?);
    let (was, is) = (&stored.spec.cidrs, &wanted.spec.cidrs);
    if (was.len(), is.len()) != (1, 2) || was.first() != is.first() {
        return None;
    }
    let mut new = stored.clone();
    new.spec.cidrs.clone_from(is);
    Some(Box::new(new))
}

/// Makes it again if it went, and says that it is ready where nobody has said anything of that.
async fn settle(context: &HookContext, wanted: &[Wanted]) -> Result<(), StatusError> {
    let maker = Maker {
        context,
        manager: MANAGER,
    };
    for one in wanted {
        maker.make(one).await?;
        let Some(ranges) = maker.objects(GROUP, PLURAL, "") else {
            return Ok(());
        };
        let stored = ranges.find(NAME).await?;
        let stored = stored.as_ref().and_then(|stored| typed::<ServiceCIDR>(&*stored.object));
        let wanted = typed::<ServiceCIDR>(&*one.object);
        if let (Some(stored), Some(wanted)) = (stored, wanted)
            && is_to_be_ready(stored, wanted)
        {
            say_ready(context).await?;
        }
    }
    Ok(())
}

fn is_to_be_ready(stored: &ServiceCIDR, wanted: &ServiceCIDR) -> bool {
    let said = stored
        .status
        .conditions
        .iter()
        .find(|condition| condition.r#type == "Ready");
    stored.metadata.deletion_timestamp.is_none()
        && stored.spec.cidrs == wanted.spec.cidrs
        && said.is_none_or(|condition| condition.status == "Unknown")
}

async fn say_ready(context: &HookContext) -> Result<(), StatusError> {
    let client = context.client(CONTROLLER);
    let ranges = client.of::<ServiceCIDR>("")?.subresource("status")?.objects;
    let document = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": NAME},
        "status": {"conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": ranges.now().to_string(),
            "message": "Kubernetes default Service CIDR is ready",
        }]},
    });
    match ranges.apply(NAME, &document).await {
        // It went meanwhile.
        Err(error) if error.code == 404 => Ok(()),
        done => done.map(drop),
    }
}
