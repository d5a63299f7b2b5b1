//! Repair of cluster addresses: each address of a service has an object that names it, and each object a service.

use std::net::IpAddr;
use std::time::Duration;

use keelson_api::core::v1::Service;
use keelson_api::networking_k8s_io::v1::{IPAddress, ParentReference, ServiceCIDR};
use keelson_machinery::meta::v1::{DeleteOptions, Preconditions};
use keelson_machinery::status::StatusError;
use keelson_registry::controller::Next;
use keelson_registry::{Client, Lister, NamespacedName, TypedLister};

use super::super::HEADLESS;
use super::super::addresses::{CONTROLLER, FAMILY_LABEL, MANAGED_BY_LABEL, key, object, of_object, owner};
use super::super::families::Family;
use crate::ip;

/// An address that is younger may be one of a service that is being written.
const GRACE: Duration = Duration::from_secs(60);

/// Looks at services and addresses.
pub struct AddressRepair<'a> {
    client: &'a Client,
    pub services: TypedLister<Service>,
    addresses: TypedLister<IPAddress>,
}

impl<'a> AddressRepair<'a> {
    /// Of all there are.
    ///
    /// # Errors
    /// The server has no such resources.
    pub fn new(client: &'a Client) -> Result<AddressRepair<'a>, StatusError> {
        let (services, addresses) = (client.of::<Service>("")?, client.of::<IPAddress>("")?);
        Ok(AddressRepair {
            client,
            services: Lister::new(services.objects.resource).typed(),
            addresses: Lister::new(addresses.objects.resource).typed(),
        })
    }

    /// Of those that are followed.
    pub fn of(client: &'a Client, services: TypedLister<Service>, addresses: TypedLister<IPAddress>) -> Self {
        AddressRepair {
            client,
            services,
            addresses,
        }
    }

    /// Sees to it that a service has what it says.
    ///
    /// # Errors
    /// The store can't be read or written.
    pub async fn service(&self, service: &Service) -> Result<(), StatusError> {
        let spec = &service.spec;
        if spec.cluster_ip.is_empty() || spec.cluster_ip == HEADLESS {
            return Ok(());
        }
        for text in &spec.cluster_ips {
            let Some(ip) = ip::parse(text).map(|ip| ip.to_canonical()) else {
                tracing::warn!(service = %named(service), ip = text, "the cluster address of a service is none");
                continue;
            };
            match self.addresses.get(&key(ip)).await? {
                None => self.make(service, ip).await?,
                Some(address) => self.confirm(service, ip, &address).await?,
            }
        }
        Ok(())
    }

    async fn make(&self, service: &Service, ip: IpAddr) -> Result<(), StatusError> {
        if !self.is_in_range(ip).await? {
            tracing::warn!(service = %named(service), %ip, "a cluster address is within no range of services");
            return Ok(());
        }
        tracing::warn!(service = %named(service), %ip, "a cluster address was not recorded; it is now");
        let made = self
            .client
            .of::<IPAddress>("")?
            .create(object(ip, &parent(service)))
            .await;
        made.map(drop)
    }

    async fn is_in_range(&self, ip: IpAddr) -> Result<bool, StatusError> {
        let ranges = self.client.of::<ServiceCIDR>("")?.all().await?;
        let mut known = ranges.iter().flat_map(of_object);
        Ok(known.any(|known| known.range.contains(ip)))
    }

    /// Has the object of an address name the service that has it, as long as no other has it too.
    async fn confirm(&self, service: &Service, ip: IpAddr, address: &IPAddress) -> Result<(), StatusError> {
        let named_parent = address.spec.parent_ref.as_deref();
        let own = parent(service);
        let is_own = named_parent.is_some_and(|named| is_same(named, &own));
        if is_own && has_labels(address, ip) {
            return Ok(());
        }
        if let (false, Some(other)) = (is_own, named_parent)
            && is_service(other)
            && let Some(other) = self.services.get(&place(other)).await?
            && has_address(&other, ip)
        {
            let (service, other) = (named(service), named(&other));
            tracing::warn!(%service, %other, %ip, "a cluster address belongs to two services; one has to be made again");
            return Ok(());
        }
        tracing::warn!(service = %named(service), %ip, "the record of a cluster address was wrong; it is made again");
        self.remove(address).await?;
        self.client
            .of::<IPAddress>("")?
            .create(object(ip, &own))
            .await
            .map(drop)
    }

    /// Removes the object of an address that no service has.
    ///
    /// # Errors
    /// The store can't be read or written.
    pub async fn address(&self, key: &NamespacedName) -> Result<Next, StatusError> {
        let Some(address) = self.addresses.get(key).await? else {
            return Ok(Next::Done);
        };
        let labels = &address.metadata.labels;
        if labels.get(MANAGED_BY_LABEL).is_none_or(|by| by != CONTROLLER) {
            return Ok(Next::Done);
        }
        let (ip, parent) = (key.name.parse::<IpAddr>().ok(), address.spec.parent_ref.as_deref());
        let parent = parent.filter(|parent| is_service(parent));
        if let (Some(ip), Some(parent)) = (ip, parent) {
            let service = self.services.get(&place(parent)).await?;
            if service.is_some_and(|service| has_address(&service, ip)) {
                return Ok(Next::Done);
            }
            let age = self.client.now() - address.metadata.creation_timestamp;
            let age = Duration::from_nanos(u64::try_from(age.as_nanos()).unwrap_or_default());
            if age < GRACE {
                return Ok(Next::After(GRACE - age));
            }
        }
        tracing::warn!(ip = key.name, "a cluster address is of no service; it is given back");
        self.remove(&address).await?;
        Ok(Next::Done)
    }

    async fn remove(&self, address: &IPAddress) -> Result<(), StatusError> {
        let options = DeleteOptions {
            preconditions: Some(Box::new(Preconditions {
                uid: Some(address.metadata.uid.clone()),
                ..Preconditions::default()
            })),
            ..DeleteOptions::default()
        };
        let objects = self.client.of::<IPAddress>("")?;
        match objects.delete(&address.metadata.name, &options).await {
            Err(error) if error.code != 404 => Err(error),
            _ => Ok(()),
        }
    }
}

fn parent(service: &Service) -> ParentReference {
    owner(&service.metadata.namespace, &service.metadata.name)
}

fn named(service: &Service) -> NamespacedName {
    NamespacedName::of(service)
}

fn place(parent: &ParentReference) -> NamespacedName {
    NamespacedName {
        namespace: parent.namespace.clone(),
        name: parent.name.clone(),
    }
}

fn is_service(parent: &ParentReference) -> bool {
    parent.group.is_empty() && parent.resource == "services"
}

fn is_same(a: &ParentReference, b: &ParentReference) -> bool {
    is_service(a) && is_service(b) && (&a.namespace, &a.name) == (&b.namespace, &b.name)
}

fn has_address(service: &Service, ip: IpAddr) -> bool {
    let mut ips = service.spec.cluster_ips.iter();
    ips.any(|text| ip::parse(text).is_some_and(|one| one.to_canonical() == ip))
}

fn has_labels(address: &IPAddress, ip: IpAddr) -> bool {
    let is = |label: &str, value: &str| address.metadata.labels.get(label).is_some_and(|found| found == value);
    is(FAMILY_LABEL, Family::of(ip).name()) && is(MANAGED_BY_LABEL, CONTROLLER)
}
