//! The identity lease of this server, by which others know that it is there, and the removal of those of servers that
//! are not.

use std::rc::Rc;
use std::time::Duration;

use keelson_api::coordination_k8s_io::v1::{Lease, LeaseSpec};
use keelson_base::identity::{host_name, server_id};
use keelson_machinery::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use keelson_machinery::status::StatusError;
use keelson_machinery::time::{MicroTime, Time};
use keelson_registry::{Client, TypedObjects};
use keelson_server::server::{HookContext, HookError};

use super::MANAGER;
use super::maker::{Maker, Wanted, leave};

const NAMESPACE: &str = "kube-system";
const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
const IDENTITY: &str = "kube-apiserver";
const HOST_LABEL: &str = "kubernetes.io/hostname";
/// Where other servers reach this one.
const ADDRESS_ANNOTATION: &str = "kubernetes.io/peer-advertise-address";
/// How long a lease counts, in seconds.
const DURATION_SECONDS: i32 = 3_600;
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(10);
/// How often leases of others are looked at.
const COLLECTION: Duration = Duration::from_secs(3_600);

/// Takes the place of a server of this name that was here before, and renews its lease from then on.
pub(super) async fn run(context: HookContext) -> Result<(), HookError> {
    let lease = Rc::new(Identity::new(&context)?);
    lease.remove().await;
    if let Err(error) = lease.make(&context).await {
        tracing::warn!(%error, "the lease of this server could not be made; it is tried again");
    }
    let client = lease.client.clone();
    context.ending.then(move || async move {
        if let Ok(leases) = client.of::<Lease>(NAMESPACE) {
            let _ = leases.delete(&server_id(), &DeleteOptions::default()).await;
        }
    });
    tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(RENEWAL).await;
            if let Err(error) = lease.renew().await {
                tracing::warn!(%error, "the lease of this server could not be renewed; it is tried again");
            }
        }
    });
    Ok(())
}

/// Removes leases that nobody renews any more, again and again.
pub(super) async fn collect(context: HookContext) -> Result<(), HookError> {
    let client = context.client(MANAGER);
    tokio::task::spawn_local(async move {
        loop {
            if let Err(error) = remove_expired(&client).await {
                tracing::warn!(%error, "leases of servers that are gone could not be looked for");
            }
            tokio::time::sleep(COLLECTION).await;
        }
    });
    Ok(())
}

/// The lease of this server.
struct Identity {
    client: Client,
    leases: TypedObjects<Lease>,
    name: String,
    /// Differs from that of any other server, also of one before it of the same name.
    holder: String,
    /// `host:port` by which other servers reach this one.
    address: String,
}

impl Identity {
    fn new(context: &HookContext) -> Result<Identity, StatusError> {
        let client = context.client(MANAGER);
        let name = server_id();
        Ok(Identity {
            leases: client.of(NAMESPACE)?,
            client,
            holder: format!("{name}_{}", context.backend.new_uid()),
            address: context.advertise.clone(),
            name,
        })
    }

    /// What is there is of a server that did not come to remove it.
    async fn remove(&self) {
        match self.leases.delete(&self.name, &DeleteOptions::default()).await {
            Err(error) if error.code != 404 => {
                tracing::warn!(%error, "the lease of the server that was here before could not be removed");
            }
            _ => {}
        }
    }

    /// Makes it, and the namespace if that is not there yet.
    async fn make(&self, context: &HookContext) -> Result<(), StatusError> {
        let wanted = Wanted {
            group: "coordination.k8s.io",
            plural: "leases",
            object: Box::new(self.lease()),
            reconcile: leave,
        };
        let maker = Maker {
            context,
            manager: MANAGER,
        };
        maker.make(&wanted).await
    }

    async fn renew(&self) -> Result<(), StatusError> {
        match self.leases.update(&self.name, |lease| self.fill(lease)).await {
            Err(error) if error.code == 404 => self.leases.create(self.lease()).await.map(drop),
            done => done.map(drop),
        }
    }

    fn lease(&self) -> Lease {
        let mut lease = Lease {
            metadata: ObjectMeta {
                name: self.name.clone(),
                namespace: NAMESPACE.to_owned(),
                ..ObjectMeta::default()
            },
            spec: LeaseSpec {
                holder_identity: Some(self.holder.clone()),
                ..LeaseSpec::default()
            },
        };
        self.fill(&mut lease);
        lease
    }

    fn fill(&self, lease: &mut Lease) {
        let Lease { metadata, spec } = lease;
        for (label, value) in [(IDENTITY_LABEL, IDENTITY), (HOST_LABEL, &host_name())] {
            metadata.labels.insert(label.to_owned(), value.to_owned());
        }
        metadata
            .annotations
            .insert(ADDRESS_ANNOTATION.to_owned(), self.address.clone());
        spec.lease_duration_seconds = Some(DURATION_SECONDS);
        spec.renew_time = Some(MicroTime(self.client.now()));
    }
}

async fn remove_expired(client: &Client) -> Result<(), StatusError> {
    let leases = client.of::<Lease>(NAMESPACE)?;
    for lease in leases.all().await? {
        let is_identity = lease
            .metadata
            .labels
            .get(IDENTITY_LABEL)
            .is_some_and(|of| of == IDENTITY);
        if !is_identity || !is_expired(&lease, client.now()) {
            continue;
        }
        // One that is renewed at this moment stays.
        let options = DeleteOptions {
            preconditions: Some(Box::new(Preconditions {
                uid: Some(lease.metadata.uid.clone()),
                resource_version: Some(lease.metadata.resource_version.clone()),
            })),
            ..DeleteOptions::default()
        };
        match leases.delete(&lease.metadata.name, &options).await {
            Err(error) if !matches!(error.code, 404 | 409) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Those that say too little are nobody's.
fn is_expired(lease: &Lease, now: Time) -> bool {
    let spec = &lease.spec;
    match (&spec.renew_time, spec.lease_duration_seconds) {
        (Some(renewed), Some(seconds)) => {
            let age = now - renewed.0;
            age.as_secs() > i64::from(seconds)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::context;
    use super::*;
    use crate::testing::read;

    #[test]
    fn leases_expire() {
        let now = Time::from_unix(1_700_003_600, 0);
        for (spec, expected) in [
            (
                r#"{"leaseDurationSeconds":3600,"renewTime":"2023-11-14T22:13:20.000000Z"}"#,
                false,
            ),
            (
                r#"{"leaseDurationSeconds":3600,"renewTime":"2023-11-14T22:13:18.000000Z"}"#,
                true,
            ),
            (r#"{"leaseDurationSeconds":3600}"#, true),
            (r#"{"renewTime":"2023-11-14T22:13:20.000000Z"}"#, true),
        ] {
            let lease: Lease = read(&format!(r#"{{"spec":{spec}}}"#));
            assert_eq!(is_expired(&lease, now), expected, "{spec}");
        }
    }

    #[tokio::test]
    async fn leases_of_servers_that_are_gone_go() {
        let context = context();
        let identity = Identity::new(&context).unwrap();
        identity.make(&context).await.unwrap();
        let labels = format!(r#"{{"{IDENTITY_LABEL}":"{IDENTITY}"}}"#);
        for (name, labels) in [("gone", labels.as_str()), ("another", "{}")] {
            let lease = read(&format!(
                r#"{{"metadata":{{"name":"{name}","namespace":"{NAMESPACE}","labels":{labels}}},
                    "spec":{{"leaseDurationSeconds":1,"renewTime":"2023-11-14T22:13:20.000000Z"}}}}"#
            ));
            identity.leases.create(lease).await.unwrap();
        }
        remove_expired(&identity.client).await.unwrap();
        let left = identity.leases.all().await.unwrap();
        let left: Vec<_> = left.into_iter().map(|lease| lease.metadata.name).collect();
        assert_eq!(left, ["another", identity.name.as_str()]);
        // Whatever becomes of it, it is there again when it is renewed.
        identity.remove().await;
        identity.renew().await.unwrap();
        identity.renew().await.unwrap();
        let own = identity.leases.find(&identity.name).await.unwrap().unwrap();
        assert_eq!(own.spec.holder_identity, Some(identity.holder));
        assert_eq!(own.metadata.annotations[ADDRESS_ANNOTATION], "192.0.2.2:6443");
    }
}
