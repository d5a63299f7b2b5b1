//! Leases of coordination.k8s.io as the locks of leader election.

use std::time::Duration;

use keelson_machinery::json;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_machinery::time::{MicroTime, Time};
use serde::Deserialize;
use serde_json::json;

use super::GroupResource;
use super::election::{Held, Lock, Record};
use crate::generic::{Answer, Client, Objects};

/// The resource that leases are.
pub(super) const LEASES: GroupResource = GroupResource::new("coordination.k8s.io", "leases");
/// Where servers have theirs.
const NAMESPACE: &str = "kube-system";

/// A lease object, there or not.
pub(super) struct LeaseLock {
    objects: Objects,
    name: &'static str,
}

/// What of a lease's specification is looked at.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u32>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    lease_transitions: Option<i32>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Lease {
    spec: Spec,
}

impl LeaseLock {
    /// `None`: the server has no leases.
    pub fn new(client: &Client, name: &'static str) -> Option<LeaseLock> {
        let objects = client.objects(&LEASES.group, &LEASES.resource, NAMESPACE)?;
        Some(LeaseLock { objects, name })
    }

    async fn create(&self, record: &Record) -> Result<Held, StatusError> {
        let mut lease = self.objects.resource.hub.new_object();
        lease.meta_mut().name = self.name.to_owned();
        lease.meta_mut().namespace = NAMESPACE.to_owned();
        fill(&mut *lease, record)?;
        held(&*self.objects.create(lease).await?)
    }

    /// Writes over what was read, and over nothing else.
    async fn update(&self, record: &Record, version: &str) -> Result<Held, StatusError> {
        let mut updater = |current: Option<&dyn Object>| {
            let current = current.ok_or_else(|| self.objects.resource.not_found(self.name))?;
            if current.meta().resource_version != version {
                return Err(StatusError::conflict(
                    &LEASES.group,
                    &LEASES.resource,
                    self.name,
                    "another server has written it",
                ));
            }
            let mut new = current.clone_object();
            fill(&mut *new, record)?;
            Ok(new)
        };
        held(&*self.objects.update(self.name, &mut updater).await?)
    }
}

impl Lock for LeaseLock {
    fn read(&self) -> Answer<'_, Option<Held>> {
        Box::pin(async {
            let found = self.objects.find(self.name).await?;
            found.map(|stored| held(&*stored.object)).transpose()
        })
    }

    fn write(&self, record: Record, over: Option<Held>) -> Answer<'_, Held> {
        Box::pin(async move {
            match over {
                Some(over) => self.update(&record, &over.version).await,
                None => self.create(&record).await,
            }
        })
    }

    fn now(&self) -> Time {
        self.objects.now()
    }
}

fn fill(lease: &mut dyn Object, record: &Record) -> Result<(), StatusError> {
    let document = json!({"spec": {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration.as_secs(),
        "acquireTime": MicroTime(record.acquired).to_string(),
        "renewTime": MicroTime(record.renewed).to_string(),
        "leaseTransitions": record.transitions,
    }});
    let read = json::read(document.to_string().as_bytes(), lease.as_reflect_mut());
    read.map(drop).map_err(StatusError::internal_error)
}

fn held(lease: &dyn Object) -> Result<Held, StatusError> {
    let mut text = Vec::new();
    json::write(lease.as_reflect(), &mut text);
    let Lease { spec } = serde_json::from_slice(&text).map_err(StatusError::internal_error)?;
    let time = |text: Option<String>| {
        let parsed = text.and_then(|text| MicroTime::parse(&text).ok());
        parsed.map_or_else(Time::default, Time::from)
    };
    Ok(Held {
        record: Record {
            holder: spec.holder_identity.unwrap_or_default(),
            duration: Duration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into()),
            acquired: time(spec.acquire_time),
            renewed: time(spec.renew_time),
            transitions: spec.lease_transitions.unwrap_or_default(),
        },
        version: lease.meta().resource_version.clone(),
    })
}
