//! The priority classes of the system.

use keelson_api::scheduling_k8s_io::v1::PriorityClass;
use keelson_server::server::{HookContext, HookError};

use super::MANAGER;
use super::maker::{Maker, Wanted, leave, read};

const CLASSES: &str = include_str!("data/priorityclasses.jsonl");

pub(super) async fn run(context: HookContext) -> Result<(), HookError> {
    let wanted = read::<PriorityClass>(CLASSES)?.into_iter().map(|class| Wanted {
        group: "scheduling.k8s.io",
        plural: "priorityclasses",
        object: Box::new(class),
        reconcile: leave,
    });
    let maker = Maker {
        context: &context,
        manager: MANAGER,
    };
    maker.make_all(&wanted.collect::<Vec<_>>()).await
}
