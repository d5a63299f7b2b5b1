//! The start of the repair of services' addresses and node ports: the server is ready when all services were looked at.

use keelson_server::server::{HookContext, HookError};

use super::MANAGER;
use super::maker::retried;
use crate::core::service::repair::ServiceRepair;

pub(super) async fn run(context: HookContext, node_ports: (u16, u16)) -> Result<(), HookError> {
    let repair = ServiceRepair::new(node_ports);
    let client = context.client(MANAGER);
    retried(|| Box::pin(repair.run_once(&client))).await?;
    context.run(repair).map_err(HookError::from)
}
