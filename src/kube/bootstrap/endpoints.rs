//! The endpoints of the service `kubernetes`: the addresses of all servers that run.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use keelson_api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use keelson_api::discovery_k8s_io::v1::{self as discovery, EndpointSlice};
use keelson_machinery::equality;
use keelson_machinery::meta::v1::{DeleteOptions, ObjectMeta};
use keelson_machinery::reflect::Reflect;
use keelson_machinery::status::StatusError;
use keelson_registry::{Client, Record, Replaced};
use keelson_server::server::HookContext;

use super::EndpointReconciler;
use super::maker::there;

/// Where servers that share a store note that they run, below the prefix of all keys.
const LEASES: &str = "masterleases";
/// How long such a note counts.
const TIME_TO_LIVE: Duration = Duration::from_secs(15);
/// How often notes and endpoints are tried while others write them.
const MAX_ATTEMPTS: usize = 16;
/// Keeps others from making slices of these endpoints.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";
const PORT_NAME: &str = "https";

/// Keeps the endpoints.
pub struct Reconciler {
    client: Client,
    kind: EndpointReconciler,
    own: IpAddr,
    ports: Vec<EndpointPort>,
    /// The note of this server, where others share its store.
    note: Option<Record<Endpoints>>,
    /// The folder of all notes.
    notes: Option<Record<Endpoints>>,
}

impl Reconciler {
    /// Of a server that is reached at this address.
    ///
    /// # Errors
    /// The server has no endpoints.
    pub fn new(
        context: &HookContext,
        manager: &str,
        kind: EndpointReconciler,
        own: SocketAddr,
    ) -> Result<Reconciler, StatusError> {
        let client = context.client(manager);
        let resource = client.of::<Endpoints>(NAMESPACE)?.objects.resource;
        let is_noted = kind == EndpointReconciler::Lease && resource.backend.store.is_shared();
        let record = |path: &str| is_noted.then(|| Record::new(resource.clone(), path));
        Ok(Reconciler {
            kind,
            own: own.ip(),
            ports: vec![EndpointPort {
                name: PORT_NAME.to_owned(),
                port: own.port().into(),
                protocol: "TCP".to_owned(),
                ..EndpointPort::default()
            }],
            note: record(&format!("{LEASES}/{}", own.ip())),
            notes: record(LEASES),
            client,
        })
    }

    /// Adds this server, and takes those out that run no longer.
    ///
    /// # Errors
    /// The store can't be read or written.
    pub async fn reconcile(&self) -> Result<(), StatusError> {
        match self.kind {
            EndpointReconciler::None => Ok(()),
            EndpointReconciler::Lease => {
                self.note().await?;
                let masters = self.masters().await?;
                if masters.is_empty() {
                    let text = "no server is noted in the store; the endpoints of the service kubernetes stay";
                    return Err(StatusError::internal_error(text));
                }
                self.write(&|endpoints| self.set(endpoints, &masters), true).await
            }
            EndpointReconciler::Count(count) => self.write(&|endpoints| self.add(endpoints, count), true).await,
        }
    }

    /// Takes this server out when it ends. Where nobody shares its store, it is there again next time.
    ///
    /// # Errors
    /// As of [`Reconciler::reconcile`].
    pub async fn leave(&self) -> Result<(), StatusError> {
        match self.kind {
            EndpointReconciler::Lease if self.note.is_some() => {
                self.forget().await?;
                let masters = self.masters().await?;
                self.write(&|endpoints| self.set(endpoints, &masters), false).await
            }
            EndpointReconciler::Count(_) => self.write(&|endpoints| self.remove(endpoints), false).await,
            _ => Ok(()),
        }
    }

    /// Notes that this server runs.
    async fn note(&self) -> Result<(), StatusError> {
        let Some(note) = &self.note else { return Ok(()) };
        let mut current = note.read().await?;
        for _ in 0..MAX_ATTEMPTS {
            let mut next = current.as_ref().map(|noted| noted.value.clone()).unwrap_or_default();
            next.subsets = vec![EndpointSubset {
                addresses: vec![address(&self.own.to_string())],
                ..EndpointSubset::default()
            }];
            // So that the value differs from the one before, as other servers expect it.
            next.metadata.generation += 1;
            match note.replace_for(TIME_TO_LIVE, current.as_ref(), next).await? {
                Replaced::Done(_) => return Ok(()),
                Replaced::Overtaken(by) => current = by,
            }
        }
        Err(StatusError::service_unavailable("another server has the same address"))
    }

    async fn forget(&self) -> Result<(), StatusError> {
        let Some(note) = &self.note else { return Ok(()) };
        if let Some(noted) = note.read().await? {
            note.remove(&noted).await?;
        }
        Ok(())
    }

    /// The addresses of the servers that run.
    async fn masters(&self) -> Result<Vec<String>, StatusError> {
        let Some(notes) = &self.notes else {
            return Ok(vec![self.own.to_string()]);
        };
        let noted = notes.below().await?;
        let first = |endpoints: &Endpoints| Some(endpoints.subsets.first()?.addresses.first()?.ip.clone());
        Ok(noted.iter().filter_map(first).filter(|ip| !ip.is_empty()).collect())
    }

    /// Has the endpoints say who runs; they may be made if `make`.
    async fn write(&self, change: &dyn Fn(&mut Endpoints), make: bool) -> Result<(), StatusError> {
        let all = self.client.of::<Endpoints>(NAMESPACE)?;
        let stored = match all.find(NAME).await? {
            Some(stored) => stored,
            None if !make => return Ok(()),
            None => {
                let mut new = Endpoints {
                    metadata: metadata([]),
                    ..Endpoints::default()
                };
                change(&mut new);
                return match there(all.create(new.clone()).await)? {
                    Some(made) => self.write_slice(&made).await,
                    // Another server was faster: it is the next look that adds this one.
                    None => Ok(()),
                };
            }
        };
        let mut next = stored.clone();
        change(&mut next);
        if equality::equal(&next, &stored) {
            return self.write_slice(&stored).await;
        }
        let next = all.update(NAME, change).await?;
        self.write_slice(&next).await
    }

    /// The slice says what the endpoints say.
    async fn write_slice(&self, endpoints: &Endpoints) -> Result<(), StatusError> {
        let wanted = slice(endpoints);
        let slices = self.client.of::<EndpointSlice>(NAMESPACE)?;
        let Some(stored) = slices.find(NAME).await? else {
            return there(slices.create(wanted).await).map(drop);
        };
        // Its addresses are of one family for ever.
        if stored.address_type != wanted.address_type {
            slices.delete(NAME, &DeleteOptions::default()).await?;
            return slices.create(wanted).await.map(drop);
        }
        let fill = |slice: &mut EndpointSlice| {
            slice.metadata.labels.clone_from(&wanted.metadata.labels);
            slice.endpoints.clone_from(&wanted.endpoints);
            slice.ports.clone_from(&wanted.ports);
        };
        let mut next = stored.clone();
        fill(&mut next);
        match equality::equal(&next, &stored) {
            true => Ok(()),
            false => slices.update(NAME, fill).await.map(drop),
        }
    }

    /// Exactly these servers.
    fn set(&self, endpoints: &mut Endpoints, masters: &[String]) {
        skip_mirror(endpoints);
        let is_alone = masters == [self.own.to_string()];
        let ports = match endpoints.subsets.as_slice() {
            // Others may have ports of their own, and did before this server came.
            [one] if !is_alone => one.ports.clone(),
            _ => self.ports.clone(),
        };
        let is_same = match endpoints.subsets.as_slice() {
            [one] => is_same_list(&one.ports, &ports) && is_set_of(&one.addresses, masters),
            _ => false,
        };
        if !is_same {
            endpoints.subsets = subsets(masters.iter().map(|ip| address(ip)).collect(), ports);
        }
    }

    /// This server too, as one of so many.
    fn add(&self, endpoints: &mut Endpoints, count: usize) {
        skip_mirror(endpoints);
        let own = self.own.to_string();
        let [one] = endpoints.subsets.as_slice() else {
            endpoints.subsets = subsets(vec![address(&own)], self.ports.clone());
            return;
        };
        let is_there = one.addresses.iter().any(|address| address.ip == own);
        if is_there && one.addresses.len() <= count {
            return;
        }
        let mut addresses = one.addresses.clone();
        addresses.push(address(&own));
        let ports = one.ports.clone();
        endpoints.subsets = subsets(addresses, ports);
        let Some(one) = endpoints.subsets.first_mut() else {
            return;
        };
        // Each server removes those behind it, so that those which are gone go sooner or later.
        while one.addresses.len() > count.max(1) {
            let at = one
                .addresses
                .iter()
                .position(|address| address.ip == own)
                .unwrap_or_default();
            one.addresses.remove((at + 1) % one.addresses.len());
        }
    }

    fn remove(&self, endpoints: &mut Endpoints) {
        let Some(one) = endpoints.subsets.first() else { return };
        let own = self.own.to_string();
        let others = one.addresses.iter().filter(|address| address.ip != own);
        endpoints.subsets = subsets(others.cloned().collect(), one.ports.clone());
    }
}

fn metadata<const N: usize>(labels: [(&str, &str); N]) -> ObjectMeta {
    ObjectMeta {
        name: NAME.to_owned(),
        namespace: NAMESPACE.to_owned(),
        labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        ..ObjectMeta::default()
    }
}

fn address(ip: &str) -> EndpointAddress {
    EndpointAddress {
        ip: ip.to_owned(),
        ..EndpointAddress::default()
    }
}

fn skip_mirror(endpoints: &mut Endpoints) {
    let labels = &mut endpoints.metadata.labels;
    labels.insert(SKIP_MIRROR.to_owned(), "true".to_owned());
}

fn is_same_list<T: Reflect>(a: &[T], b: &[T]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equality::equal(a, b))
}

fn is_set_of(addresses: &[EndpointAddress], ips: &[String]) -> bool {
    addresses.len() == ips.len() && addresses.iter().all(|address| ips.contains(&address.ip))
}

/// As the API orders them: sorted by text, each once, and nothing where there are none.
fn subsets(mut addresses: Vec<EndpointAddress>, ports: Vec<EndpointPort>) -> Vec<EndpointSubset> {
    addresses.sort_by(|a, b| a.ip.cmp(&b.ip));
    addresses.dedup_by(|a, b| a.ip == b.ip);
    if addresses.is_empty() {
        return Vec::new();
    }
    vec![EndpointSubset {
        addresses,
        ports,
        ..EndpointSubset::default()
    }]
}

/// The slice of endpoints: of IPv6 where all addresses are, else of those of IPv4.
fn slice(endpoints: &Endpoints) -> EndpointSlice {
    let subset = endpoints.subsets.first().cloned().unwrap_or_default();
    let is_v6 = |ip: &str| ip.contains(':');
    let mut addresses = subset.addresses.iter().map(|address| address.ip.as_str());
    let of_v6 = !subset.addresses.is_empty() && addresses.all(is_v6);
    let shown = subset.addresses.iter().filter(|address| is_v6(&address.ip) == of_v6);
    EndpointSlice {
        metadata: metadata([(SERVICE_LABEL, NAME)]),
        address_type: if of_v6 { "IPv6" } else { "IPv4" }.to_owned(),
        endpoints: shown
            .map(|address| discovery::Endpoint {
                addresses: vec![address.ip.clone()],
                conditions: discovery::EndpointConditions {
                    ready: Some(true),
                    ..discovery::EndpointConditions::default()
                },
                ..discovery::Endpoint::default()
            })
            .collect(),
        ports: subset.ports.iter().map(slice_port).collect(),
    }
}

fn slice_port(port: &EndpointPort) -> discovery::EndpointPort {
    discovery::EndpointPort {
        name: Some(port.name.clone()),
        protocol: Some(port.protocol.clone()),
        port: Some(port.port),
        ..discovery::EndpointPort::default()
    }
}

#[cfg(test)]
mod tests;
