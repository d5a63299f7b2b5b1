//! Cluster addresses: each service gets its own out of the ranges that ServiceCIDRs name. An IPAddress object says that
//! an address is taken: whoever makes it has the address, whatever other servers do at the same time.
//!
//! Free addresses are looked for in the store's memory from a random place on, so that servers seldom meet.

pub mod range;
mod ranges;

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keelson_api::networking_k8s_io::v1::{IPAddress, IPAddressSpec, ParentReference};
use keelson_machinery::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use keelson_machinery::status::StatusError;
use keelson_registry::{Client, Lister, NamespacedName, Resource, Verbs};

use super::MANAGER;
use super::families::Family;
use range::{Region, address, around, number};
use ranges::Ranges;
pub use ranges::of_object;

pub const GROUP: &str = "networking.k8s.io";
pub const PLURAL: &str = "ipaddresses";
/// Who manages the objects, as a label of them.
pub const CONTROLLER: &str = "ipallocator.k8s.io";
pub const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
pub const MANAGED_BY_LABEL: &str = "ipaddress.kubernetes.io/managed-by";

/// How many addresses are looked at from one random place on, and from how many places, before all names are read.
const RUN: usize = 64;
const RUNS: usize = 8;

/// Why there is no address, in the words of the API.
#[derive(Debug)]
pub enum Fault {
    /// All are taken.
    Full,
    /// No range is ready.
    NotReady,
    /// No range that is ready has this one.
    Foreign,
    /// The range does not have it.
    NotInRange(IpAddr, String),
    /// Another service has it.
    Taken,
    /// The object could not be made.
    Failed(StatusError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Full => f.write_str("range is full"),
            Fault::NotReady => f.write_str("allocator not ready"),
            Fault::Foreign => f.write_str("the provided network does not match the current range"),
            Fault::NotInRange(ip, range) => write!(
                f,
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {range}"
            ),
            Fault::Taken => f.write_str("provided IP is already allocated"),
            Fault::Failed(error) => f.write_str(&error.message),
        }
    }
}

impl From<StatusError> for Fault {
    fn from(error: StatusError) -> Fault {
        Fault::Failed(error)
    }
}

/// An address, and the object that says whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    pub ip: IpAddr,
    /// Of the object; `None`: whichever has the name.
    pub uid: Option<String>,
}

/// Gives addresses to services.
#[derive(Default)]
pub struct Addresses {
    ranges: Ranges,
    /// Addresses whose objects this server is about to make: others look further.
    claimed: Mutex<HashSet<IpAddr>>,
}

/// An address that nobody else of this server tries.
struct Claim<'a>(&'a Addresses, IpAddr);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.claims().remove(&self.1);
    }
}

impl Addresses {
    /// Takes this address.
    ///
    /// # Errors
    /// It is of no range, or taken, or could not be taken.
    pub async fn take(&self, verbs: &Arc<Verbs>, owner: &ParentReference, ip: IpAddr) -> Result<Held, Fault> {
        let ranges = self.ranges.of(verbs, Family::of(ip)).await?;
        if !ranges.iter().any(|known| known.ready && known.range.contains(ip)) {
            return Err(Fault::Foreign);
        }
        make(verbs, owner, ip.to_canonical()).await
    }

    /// Takes any address of a family.
    ///
    /// # Errors
    /// There is none, or it could not be taken.
    pub async fn take_any(&self, verbs: &Arc<Verbs>, owner: &ParentReference, family: Family) -> Result<Held, Fault> {
        let mut ranges = self.ranges.of(verbs, family).await?;
        ranges.retain(|known| known.ready);
        if !ranges.is_empty() {
            let first = random(verbs) % ranges.len() as u128;
            ranges.rotate_left(usize::try_from(first).unwrap_or_default());
        }
        let resource = resource(verbs)?;
        resource.hold().await?;
        let search = Search {
            addresses: self,
            verbs,
            owner,
            resource: &resource,
        };
        for known in ranges {
            for region in known.range.regions() {
                match search.region(family, region).await {
                    Err(Fault::Full) => {}
                    done => return done,
                }
            }
        }
        Err(Fault::Full)
    }

    /// What [`Addresses::take`] would come to, as far as the ranges say; nothing is taken.
    ///
    /// # Errors
    /// It is of no range.
    pub async fn would_take(&self, verbs: &Arc<Verbs>, ip: IpAddr) -> Result<(), Fault> {
        let ranges = self.ranges.of(verbs, Family::of(ip)).await?;
        let first = ranges.first().ok_or(Fault::NotReady)?;
        match ranges.iter().any(|known| known.range.contains(ip)) {
            true => Ok(()),
            false => Err(Fault::NotInRange(ip, first.cidr.clone())),
        }
    }

    /// What a service is shown that asks what it would get: the address of a network.
    ///
    /// # Errors
    /// There is no range.
    pub async fn would_take_any(&self, verbs: &Arc<Verbs>, family: Family) -> Result<IpAddr, Fault> {
        let ranges = self.ranges.of(verbs, family).await?;
        let first = ranges.first().ok_or(Fault::NotReady)?;
        Ok(first.range.base())
    }

    fn claims(&self) -> MutexGuard<'_, HashSet<IpAddr>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claim(&self, ip: IpAddr) -> Option<Claim<'_>> {
        self.claims().insert(ip).then(|| Claim(self, ip))
    }
}

/// A search for a free address.
struct Search<'a> {
    addresses: &'a Addresses,
    verbs: &'a Arc<Verbs>,
    owner: &'a ParentReference,
    /// Of the objects.
    resource: &'a Arc<Resource>,
}

impl Search<'_> {
    async fn region(&self, family: Family, region: Region) -> Result<Held, Fault> {
        for _ in 0..RUNS {
            let run = around(region, random(self.verbs)).take(RUN);
            let free = run.map(|n| address(family, n)).filter(|ip| !self.is_taken(*ip));
            match self.first(free).await {
                Err(Fault::Full) => {}
                done => return done,
            }
            if region.1 - region.0 < RUN as u128 {
                return Err(Fault::Full);
            }
        }
        // Nearly all are taken: rather than one by one they are read at once.
        let names = Lister::new(self.resource.clone()).names("").await?;
        let taken = names.iter().filter_map(|key| key.name.parse().ok());
        let taken: HashSet<u128> = taken.filter(|ip| Family::of(*ip) == family).map(number).collect();
        let all = around(region, random(self.verbs)).filter(|n| !taken.contains(n));
        self.first(all.map(|n| address(family, n))).await
    }

    fn is_taken(&self, ip: IpAddr) -> bool {
        self.resource.is_held("", &ip.to_string()).unwrap_or_default()
    }

    /// Takes the first of these that nobody else takes.
    async fn first(&self, candidates: impl Iterator<Item = IpAddr>) -> Result<Held, Fault> {
        for ip in candidates {
            let Some(_claim) = self.addresses.claim(ip) else {
                continue;
            };
            match make(self.verbs, self.owner, ip).await {
                // Another server was faster.
                Err(Fault::Taken) => {}
                done => return done,
            }
        }
        Err(Fault::Full)
    }
}

fn random(verbs: &Verbs) -> u128 {
    let mut bytes = [0; 16];
    verbs.backend.entropy.fill(&mut bytes);
    u128::from_le_bytes(bytes)
}

fn resource(verbs: &Verbs) -> Result<Arc<Resource>, Fault> {
    verbs.registry.resource(GROUP, PLURAL).ok_or(Fault::NotReady)
}

/// The object that says that a service has an address.
pub fn object(ip: IpAddr, owner: &ParentReference) -> IPAddress {
    let labels = [(FAMILY_LABEL, Family::of(ip).name()), (MANAGED_BY_LABEL, CONTROLLER)];
    IPAddress {
        metadata: ObjectMeta {
            name: ip.to_string(),
            labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ..ObjectMeta::default()
        },
        spec: IPAddressSpec {
            parent_ref: Some(Box::new(owner.clone())),
        },
    }
}

/// The service of this name, as the owner of an address.
pub fn owner(namespace: &str, name: &str) -> ParentReference {
    ParentReference {
        resource: "services".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..ParentReference::default()
    }
}

async fn make(verbs: &Arc<Verbs>, owner: &ParentReference, ip: IpAddr) -> Result<Held, Fault> {
    let objects = Client::of_server(verbs.clone(), MANAGER).objects(GROUP, PLURAL, "");
    let objects = objects.ok_or(Fault::NotReady)?;
    match objects.create(Box::new(object(ip, owner))).await {
        Ok(made) => Ok(Held {
            ip,
            uid: Some(made.meta().uid.clone()),
        }),
        Err(error) if error.reason == "AlreadyExists" => Err(Fault::Taken),
        Err(error) => Err(Fault::Failed(error)),
    }
}

/// Lets others have an address. What can't be given back now is found by whoever repairs.
pub async fn give_back(verbs: &Arc<Verbs>, held: &Held) {
    let Some(objects) = Client::of_server(verbs.clone(), MANAGER).objects(GROUP, PLURAL, "") else {
        return;
    };
    let preconditions = held.uid.clone().map(|uid| {
        Box::new(Preconditions {
            uid: Some(uid),
            ..Preconditions::default()
        })
    });
    let options = DeleteOptions {
        preconditions,
        ..DeleteOptions::default()
    };
    match objects.delete(&held.ip.to_string(), &options).await {
        Err(error) if error.code != 404 => {
            tracing::warn!(ip = %held.ip, %error, "a cluster address could not be given back; it will be found later");
        }
        _ => {}
    }
}

/// The key of the object of an address.
pub fn key(ip: IpAddr) -> NamespacedName {
    NamespacedName {
        name: ip.to_string(),
        ..NamespacedName::default()
    }
}
