//! The ServiceCIDR of the ranges that the command line gives.

use std::rc::Rc;

use keelson_api::networking_k8s_io::v1::{ServiceCIDR, ServiceCIDRSpec};
use keelson_machinery::meta::v1::{Condition, ObjectMeta};
use keelson_machinery::object::Object;
use keelson_machinery::time::Time;
use keelson_server::server::HookContext;

use super::maker::{Maker, Wanted, leave, retried};
use super::{MANAGER, Setting};
use crate::typed::typed;

const GROUP: &str = "networking.k8s.io";
const PLURAL: &str = "servicecidrs";
const NAME: &str = "kubernetes";
/// Owns the status.
const CONTROLLER: &str = "kubernetes-service-cidr-controller";

pub(super) async fn run(context: HookContext, setting: Rc<Setting>) -> Result<(), String> {
    let range = ServiceCIDR {
        metadata: ObjectMeta {
            name: NAME.to_owned(),
            ..ObjectMeta::default()
        },
        spec: ServiceCIDRSpec {
            cidrs: setting.service_ranges.iter().map(|(cidr, _)| cidr.clone()).collect(),
        },
        ..ServiceCIDR::default()
    };
    let wanted = Wanted {
        group: GROUP,
        plural: PLURAL,
        object: Box::new(range),
        reconcile: leave,
    };
    let (context, manager) = (&context, MANAGER);
    Maker { context, manager }.make_all(&[wanted]).await?;
    let maker = &Maker {
        context,
        manager: CONTROLLER,
    };
    let Some(ranges) = maker.objects(GROUP, PLURAL, "") else {
        return Ok(());
    };
    let ranges = &ranges.subresource("status").map_err(|error| error.to_string())?;
    retried(|| {
        Box::pin(async {
            let now = ranges.now();
            maker.update(ranges, NAME, &|stored| ready(stored, now)).await
        })
    })
    .await
}

fn ready(stored: &dyn Object, now: Time) -> Option<Box<dyn Object>> {
    let mut range = typed::<ServiceCIDR>(stored)?.clone();
    let conditions = &mut range.status.conditions;
    if conditions
        .iter()
        .any(|condition| condition.r#type == "Ready" && condition.status == "True")
    {
        return None;
    }
    conditions.retain(|condition| condition.r#type != "Ready");
    conditions.push(Condition {
        r#type: "Ready".to_owned(),
        status: "True".to_owned(),
        last_transition_time: now.truncate_to_seconds(),
        message: "Kubernetes default Service CIDR is ready".to_owned(),
        ..Condition::default()
    });
    Some(Box::new(range))
}
