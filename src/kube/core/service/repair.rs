//! Repair of addresses and node ports: a controller that finds what belongs to no service, and what services have
//! without it being recorded. Servers that were killed leave such things behind, and so do writers who go past the
//! server.

mod addresses;
mod ports;

use std::cell::RefCell;
use std::time::Duration;

use keelson_api::core::v1::Service;
use keelson_api::networking_k8s_io::v1::IPAddress;
use keelson_machinery::status::StatusError;
use keelson_registry::controller::{Controller, ControllerContext, Failure, GroupResource, Next};
use keelson_registry::{Change, Client, NamespacedName, TypedLister};

use super::MANAGER;
use super::addresses::{GROUP, PLURAL};
use super::ports::PortRange;
use addresses::AddressRepair;
use ports::PortRepair;

const SERVICES: GroupResource = GroupResource::new("", "services");
const ADDRESSES: GroupResource = GroupResource::new(GROUP, PLURAL);
/// How often node ports are looked at.
const PERIOD: Duration = Duration::from_secs(3 * 60);
/// Services or addresses that are looked at side by side.
const WORKERS: usize = 5;
/// Services after which others of the thread are let in.
const BREATH: usize = 32;

/// Keeps addresses and ports right.
///
/// Its keys are those of services, which have a namespace; those of addresses, which have none; and one without a name,
/// which stands for all ports.
pub struct ServiceRepair {
    ports: RefCell<Option<PortRepair>>,
}

impl ServiceRepair {
    /// Of services that get ports of this range on nodes.
    pub fn new((first, last): (u16, u16)) -> ServiceRepair {
        let ports = PortRepair::new(PortRange { first, last });
        ServiceRepair {
            ports: RefCell::new(Some(ports)),
        }
    }

    /// Looks at all services once, and makes the record of their ports if there is none.
    ///
    /// # Errors
    /// The store can't be read or written, or the server has no services.
    pub async fn run_once(&self, client: &Client) -> Result<(), StatusError> {
        self.repair_ports(client).await?;
        let repair = AddressRepair::new(client)?;
        let mut services = EachService::of(&repair.services).await?;
        while let Some(service) = services.next().await? {
            repair.service(&service).await?;
        }
        Ok(())
    }

    /// Looks at all addresses once.
    ///
    /// # Errors
    /// The store can't be read or written.
    #[cfg(test)]
    pub async fn addresses_once(&self, client: &Client) -> Result<(), StatusError> {
        let repair = AddressRepair::new(client)?;
        for address in client.of::<IPAddress>("")?.all().await? {
            repair.address(&NamespacedName::of(&address)).await?;
        }
        Ok(())
    }

    async fn repair_ports(&self, client: &Client) -> Result<(), StatusError> {
        // Taken out meanwhile; there is one key for all ports, so that nobody else asks for it.
        let Some(mut ports) = self.ports.take() else {
            return Ok(());
        };
        let done = ports.run_once(client).await;
        self.ports.replace(Some(ports));
        done
    }
}

impl Controller for ServiceRepair {
    fn name(&self) -> &'static str {
        "ipallocator-repair-controller"
    }

    fn manager(&self) -> &'static str {
        MANAGER
    }

    fn reconciles(&self) -> GroupResource {
        SERVICES
    }

    fn begins_with(&self) -> Vec<NamespacedName> {
        vec![NamespacedName::default()]
    }

    fn watches(&self) -> Vec<GroupResource> {
        vec![ADDRESSES]
    }

    /// An address that went may be missed by the service that it was of.
    async fn affected(&self, change: &Change, _context: &ControllerContext) -> Result<Vec<NamespacedName>, Failure> {
        if !change.is_deletion() {
            return Ok(vec![change.key.clone()]);
        }
        let was: Option<IPAddress> = change.old_typed().await?;
        let parent = was.and_then(|was| was.spec.parent_ref);
        Ok(parent
            .filter(|parent| !parent.namespace.is_empty())
            .map(|parent| NamespacedName {
                namespace: parent.namespace.clone(),
                name: parent.name.clone(),
            })
            .into_iter()
            .collect())
    }

    async fn reconcile(&self, key: &NamespacedName, context: &ControllerContext) -> Result<Next, Failure> {
        let client = context.client();
        if key.name.is_empty() {
            self.repair_ports(client).await?;
            return Ok(Next::After(PERIOD));
        }
        let repair = AddressRepair::of(client, context.typed_lister()?, context.typed_lister()?);
        if key.namespace.is_empty() {
            return Ok(repair.address(key).await?);
        }
        if let Some(service) = repair.services.get(key).await? {
            repair.service(&service).await?;
        }
        Ok(Next::Done)
    }

    fn workers(&self) -> usize {
        WORKERS
    }
}

/// All services, one by one: there may be so many that only their names are held at once.
struct EachService<'a> {
    lister: &'a TypedLister<Service>,
    names: std::vec::IntoIter<NamespacedName>,
}

impl<'a> EachService<'a> {
    async fn of(lister: &'a TypedLister<Service>) -> Result<EachService<'a>, StatusError> {
        let names = lister.lister.names("").await?.into_iter();
        Ok(EachService { lister, names })
    }

    async fn next(&mut self) -> Result<Option<Service>, StatusError> {
        while let Some(key) = self.names.next() {
            if self.names.len().is_multiple_of(BREATH) {
                tokio::task::yield_now().await;
            }
            if let Some(service) = self.lister.get(&key).await? {
                return Ok(Some(service));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
