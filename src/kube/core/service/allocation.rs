//! Allocation: the addresses and node ports that a write of a service takes and frees.

mod faults;
mod guard;

use std::net::IpAddr;
use std::sync::Arc;

use keelson_api::core::v1::{Service, ServiceSpec};
use keelson_machinery::field::text::quote;
use keelson_machinery::status::StatusError;
use keelson_registry::reservation::Reservation;
use keelson_registry::{Context, NamespacedName, Verbs};

use super::HEADLESS;
use super::addresses::{self, Addresses, Held, owner};
use super::change::{join_addresses, keep_given};
use super::defaults::decorate;
use super::families::{self, Families, Family, has_cluster_ip};
use super::ports::plan::{self, Plan};
use super::ports::{self, Batch, PortRange, Ports, Want};
use crate::ip;
use faults::{address_fault, invalid, port_fault, repeated};
use guard::{Allocation, Share};

/// The first port that a dry run shows, less one: it takes none, and does not look for a free one.
const DRY_RUN_PORT: i32 = 32_768;

/// What gives services their addresses and ports.
pub struct Allocators {
    pub families: Families,
    addresses: Addresses,
    ports: Arc<Ports>,
}

/// A write of a service that is under way.
struct Write<'a> {
    allocators: &'a Arc<Allocators>,
    verbs: &'a Arc<Verbs>,
    dry_run: bool,
}

impl Allocators {
    /// Of these families and ports.
    pub fn new(families: Families, ports: PortRange) -> Allocators {
        Allocators {
            families,
            addresses: Addresses::default(),
            ports: Arc::new(Ports::new(ports)),
        }
    }

    /// Gives a new service what it needs.
    ///
    /// # Errors
    /// What it asks for contradicts itself, or is not to be had.
    pub async fn create(
        self: &Arc<Self>,
        context: &Context,
        service: &mut Service,
    ) -> Result<Box<dyn Reservation>, StatusError> {
        join_addresses(&mut service.spec, None);
        let filled = families::fill(self.families, &mut service.spec, None);
        filled.map_err(|errors| invalid(service, &errors))?;
        let write = self.write(context)?;
        let mut allocation = Allocation::new(self, write.verbs);
        let plan = plan::of_new(&service.spec);
        let made = async {
            write.addresses(&mut allocation.taken, service).await?;
            write.ports(&mut allocation, service, plan).await
        };
        finish(made.await, allocation).await
    }

    /// Gives a service that is changed what it needs, and takes what it no longer needs.
    ///
    /// # Errors
    /// As of [`Allocators::create`].
    pub async fn update(
        self: &Arc<Self>,
        context: &Context,
        new: &mut Service,
        old: &Service,
    ) -> Result<Box<dyn Reservation>, StatusError> {
        let mut old = old.spec.clone();
        decorate(self.families, &mut old);
        keep_given(&mut new.spec, &old);
        join_addresses(&mut new.spec, Some(&old));
        let filled = families::fill(self.families, &mut new.spec, Some(&old));
        filled.map_err(|errors| invalid(new, &errors))?;
        let write = self.write(context)?;
        let mut allocation = Allocation::new(self, write.verbs);
        let made = async {
            write.changed_addresses(&mut allocation, new, &old).await?;
            let plan = plan::of_change(&new.spec, &old);
            write.ports(&mut allocation, new, plan).await
        };
        finish(made.await, allocation).await
    }

    /// What others may have when a service is gone; the endpoints of its name go with it.
    pub fn removal(self: &Arc<Self>, context: &Context, service: &Service) -> Option<Box<dyn Reservation>> {
        let verbs = context.verbs.as_ref()?;
        let mut allocation = Allocation::new(self, verbs);
        let mut spec = service.spec.clone();
        decorate(self.families, &mut spec);
        allocation.freed = Share {
            addresses: held(&spec),
            ports: plan::of_gone(&spec),
            endpoints: Some(NamespacedName {
                namespace: service.metadata.namespace.clone(),
                name: service.metadata.name.clone(),
            }),
        };
        Some(Box::new(allocation))
    }

    fn write<'a>(self: &'a Arc<Self>, context: &'a Context) -> Result<Write<'a>, StatusError> {
        let verbs = context.verbs.as_ref();
        Ok(Write {
            allocators: self,
            verbs: verbs.ok_or_else(|| StatusError::internal_error("services need a server"))?,
            dry_run: context.dry_run,
        })
    }
}

/// An attempt that failed gives back what it took, before the client is told.
async fn finish(made: Result<(), StatusError>, allocation: Allocation) -> Result<Box<dyn Reservation>, StatusError> {
    match made {
        Ok(()) => Ok(Box::new(allocation)),
        Err(error) => {
            allocation.undo().await;
            Err(error)
        }
    }
}

/// The addresses that a service has.
fn held(spec: &ServiceSpec) -> Vec<Held> {
    if !has_cluster_ip(spec) {
        return Vec::new();
    }
    let ips = spec.cluster_ips.iter().filter_map(|text| ip::parse(text));
    ips.map(|ip| Held {
        ip: ip.to_canonical(),
        uid: None,
    })
    .collect()
}

impl Write<'_> {
    /// Takes the addresses of a service that has none of its own yet, for each of its families.
    async fn addresses(&self, taken: &mut Share, service: &mut Service) -> Result<(), StatusError> {
        let spec = &service.spec;
        if !has_cluster_ip(spec) || spec.cluster_ips.first().is_some_and(|ip| ip == HEADLESS) {
            return Ok(());
        }
        let count = spec.ip_families.len();
        service
            .spec
            .cluster_ips
            .resize(count.max(service.spec.cluster_ips.len()), String::new());
        for place in 0..count {
            self.address(taken, service, place).await?;
        }
        service.spec.cluster_ip = service.spec.cluster_ips.first().cloned().unwrap_or_default();
        Ok(())
    }

    /// Takes the address at a place of the list, or any where the list does not say which.
    async fn address(&self, taken: &mut Share, service: &mut Service, place: usize) -> Result<(), StatusError> {
        let wanted = service.spec.cluster_ips[place].clone();
        let given = match wanted.as_str() {
            "" => {
                let family =
                    Family::named(&service.spec.ip_families[place]).unwrap_or(self.allocators.families.primary);
                self.any_address(taken, service, family).await
            }
            text => match ip::parse(text) {
                Some(ip) => self.this_address(taken, service, ip).await,
                None => {
                    let text = format!("failed to parse service IP {}", quote(text));
                    return Err(StatusError::internal_error(text));
                }
            },
        };
        match given {
            Ok(ip) if wanted.is_empty() => service.spec.cluster_ips[place] = ip.to_string(),
            Ok(_) => {}
            Err(fault) => return Err(address_fault(service, &wanted, fault)),
        }
        Ok(())
    }

    async fn any_address(
        &self,
        taken: &mut Share,
        service: &Service,
        family: Family,
    ) -> Result<IpAddr, addresses::Fault> {
        let addresses = &self.allocators.addresses;
        if self.dry_run {
            return addresses.would_take_any(self.verbs, family).await;
        }
        let owner = owner(&service.metadata.namespace, &service.metadata.name);
        let held = addresses.take_any(self.verbs, &owner, family).await?;
        let ip = held.ip;
        taken.addresses.push(held);
        Ok(ip)
    }

    async fn this_address(&self, taken: &mut Share, service: &Service, ip: IpAddr) -> Result<IpAddr, addresses::Fault> {
        let addresses = &self.allocators.addresses;
        if self.dry_run {
            return addresses.would_take(self.verbs, ip).await.map(|()| ip);
        }
        let owner = owner(&service.metadata.namespace, &service.metadata.name);
        taken.addresses.push(addresses.take(self.verbs, &owner, ip).await?);
        Ok(ip)
    }

    /// What a change takes and frees: all where the service becomes one with addresses or ceases to be, the second
    /// address where it comes or goes.
    async fn changed_addresses(
        &self,
        allocation: &mut Allocation,
        new: &mut Service,
        old: &ServiceSpec,
    ) -> Result<(), StatusError> {
        if families::is_settled(&new.spec, old) {
            return Ok(());
        }
        let (has, had) = (has_cluster_ip(&new.spec), has_cluster_ip(old));
        if has && !had {
            return self.addresses(&mut allocation.taken, new).await;
        }
        if !had || old.cluster_ips.first().is_some_and(|ip| ip == HEADLESS) {
            return Ok(());
        }
        let freed = &mut allocation.freed.addresses;
        match (old.ip_families.len(), new.spec.ip_families.len()) {
            _ if !has => *freed = held(old),
            (1, 2) => {
                new.spec
                    .cluster_ips
                    .resize(new.spec.cluster_ips.len().max(2), String::new());
                self.address(&mut allocation.taken, new, 1).await?;
            }
            (2, 1) => *freed = held(old).into_iter().skip(1).collect(),
            _ => {}
        }
        Ok(())
    }

    async fn ports(&self, allocation: &mut Allocation, service: &mut Service, plan: Plan) -> Result<(), StatusError> {
        if self.dry_run {
            let taken = self.dry_run_ports(service, &plan).await?;
            plan.fill(&mut service.spec, &taken);
            return repeated(&plan);
        }
        allocation.freed.ports.clone_from(&plan.batch.free);
        if plan.batch.take.is_empty() {
            return repeated(&plan);
        }
        let batch = Batch {
            take: plan.batch.take.clone(),
            ..Batch::default()
        };
        match self.allocators.ports.change(self.verbs, batch).await? {
            Ok(taken) => {
                allocation.taken.ports.extend(taken.iter().copied().map(i32::from));
                let taken: Vec<i32> = taken.into_iter().map(i32::from).collect();
                plan.fill(&mut service.spec, &taken);
                repeated(&plan)
            }
            Err((place, fault)) => Err(port_fault(service, &plan, place, &fault)),
        }
    }

    /// What a dry run shows: ports that are asked for must be free, others are made up.
    async fn dry_run_ports(&self, service: &Service, plan: &Plan) -> Result<Vec<i32>, StatusError> {
        let mut taken: Vec<i32> = Vec::new();
        for (place, want) in plan.batch.take.iter().enumerate() {
            let port = match want {
                Want::This(port) => {
                    if taken.contains(port) || self.allocators.ports.is_taken(self.verbs, *port).await? {
                        return Err(port_fault(service, plan, place, &ports::Fault::Taken));
                    }
                    *port
                }
                Want::Any => taken.iter().max().map_or(DRY_RUN_PORT, |last| *last.max(&0)) + 1,
            };
            taken.push(port);
        }
        Ok(taken)
    }
}
