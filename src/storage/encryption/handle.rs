//! The encryption of a running server: what its configuration comes to, and its replacement by another one.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::aes_cbc::AesCbc;
use super::aes_gcm::AesGcm;
use super::chain::{Chain, Link};
use super::config::{Configuration, Key, Provider};
use super::identity::Identity;
#[cfg(feature = "kms")]
use super::kms::{Service, ServiceError};
#[cfg(not(feature = "kms"))]
use super::no_kms::{Service, ServiceError};
use super::secretbox::Secretbox;
use super::{Opened, Secret, TransformError, Transformer, resources};

/// The encryption of all resources. Cheap to share; a new configuration holds for all at once.
pub struct Encryption {
    current: ArcSwap<Current>,
    reloads: Reloads,
}

/// How often the configuration was read anew, and when last, in seconds since 1970; 0: never.
#[derive(Default, Debug)]
pub struct Reloads {
    pub succeeded: AtomicU64,
    pub failed: AtomicU64,
    pub last_success: AtomicU64,
    pub last_failure: AtomicU64,
}

/// What came of reading the configuration anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reload {
    Unchanged,
    Replaced,
    /// The old one stays; the log says why.
    Failed,
}

#[derive(Default)]
struct Current {
    configuration: Configuration,
    /// By the names of the rules.
    chains: HashMap<String, Chain>,
    services: Vec<Arc<Service>>,
}

impl Encryption {
    /// Without a configuration, values are stored as they are.
    pub fn none() -> Arc<Encryption> {
        Arc::new(Encryption {
            current: ArcSwap::from_pointee(Current::default()),
            reloads: Reloads::default(),
        })
    }

    /// Starts what the configuration needs: a thread for each key management service.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn new(configuration: Configuration) -> std::io::Result<Arc<Encryption>> {
        Ok(Arc::new(Encryption {
            current: ArcSwap::from_pointee(Current::new(configuration)?),
            reloads: Reloads::default(),
        }))
    }

    /// The encryption of one resource.
    pub fn resource(self: &Arc<Self>, group: &str, resource: &str) -> ForResource {
        ForResource {
            encryption: self.clone(),
            names: resources::names(group, resource),
        }
    }

    /// Takes another configuration, if it is one and its key management services answer.
    pub async fn reload<E: Display>(&self, read: Result<Configuration, E>) -> Reload {
        let replaced = match read {
            Ok(configuration) if configuration == self.current.load().configuration => return Reload::Unchanged,
            Ok(configuration) => self.replace(configuration).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_secs());
        match replaced {
            Ok(()) => {
                self.reloads.succeeded.fetch_add(1, Ordering::Relaxed);
                self.reloads.last_success.store(now, Ordering::Relaxed);
                tracing::info!("the encryption configuration was replaced");
                Reload::Replaced
            }
            Err(reason) => {
                self.reloads.failed.fetch_add(1, Ordering::Relaxed);
                self.reloads.last_failure.store(now, Ordering::Relaxed);
                tracing::error!(
                    reason,
                    "the new encryption configuration is not usable; the old one stays"
                );
                Reload::Failed
            }
        }
    }

    async fn replace(&self, configuration: Configuration) -> Result<(), ReplaceError> {
        let next = Current::new(configuration)?;
        health(&next.services).await?;
        self.current.store(Arc::new(next));
        Ok(())
    }

    /// Whether there is a configuration.
    pub fn is_configured(&self) -> bool {
        !self.current.load().chains.is_empty()
    }

    pub fn reloads(&self) -> &Reloads {
        &self.reloads
    }

    /// Whether a key management service has a part in this: then [`Encryption::health`] is worth asking.
    pub fn has_services(&self) -> bool {
        !self.current.load().services.is_empty()
    }

    /// An error says which key management service does not do its part, and why.
    pub async fn health(&self) -> Result<(), UnhealthyService> {
        let current = self.current.load_full();
        health(&current.services).await
    }
}

/// A key management service that does not do its part.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("kms-provider-{number}: {error}")]
pub struct UnhealthyService {
    /// Among the services of the configuration, from 0.
    pub number: usize,
    pub error: ServiceError,
}

/// Why a configuration does not take the place of another one.
#[derive(Debug, thiserror::Error)]
enum ReplaceError {
    /// The system gives no thread.
    #[error(transparent)]
    Thread(#[from] std::io::Error),
    #[error(transparent)]
    Service(#[from] UnhealthyService),
}

async fn health(services: &[Arc<Service>]) -> Result<(), UnhealthyService> {
    for (number, service) in services.iter().enumerate() {
        let health = service.health().await;
        health.map_err(|error| UnhealthyService { number, error })?;
    }
    Ok(())
}

impl Current {
    fn new(configuration: Configuration) -> std::io::Result<Current> {
        let mut links: HashMap<String, Vec<Link>> = HashMap::new();
        let mut services = Vec::new();
        for rule in &configuration.rules {
            for provider in &rule.providers {
                let service = match provider {
                    Provider::Kms(kms) => Some(Service::start(kms)?),
                    _ => None,
                };
                services.extend(service.clone());
                for name in &rule.resources {
                    let link = link(provider, service.as_ref());
                    links.entry(name.clone()).or_default().push(link);
                }
            }
        }
        let chain = |(name, links)| (name, Chain::new(links, TransformError::NoPrefix));
        Ok(Current {
            chains: links.into_iter().map(chain).collect(),
            services,
            configuration,
        })
    }
}

fn link(provider: &Provider, service: Option<&Arc<Service>>) -> Link {
    let keyed = |kind: &str, transformer: Chain| Link {
        prefix: format!("k8s:enc:{kind}:v1:").into_bytes(),
        transformer: Box::new(transformer),
    };
    match (provider, service) {
        (Provider::AesCbc(keys), _) => keyed("aescbc", of_keys(keys, "AES", |key| Box::new(AesCbc(key)))),
        (Provider::AesGcm(keys), _) => keyed("aesgcm", of_keys(keys, "AES", |key| Box::new(AesGcm(key)))),
        (Provider::Secretbox(keys), _) => {
            keyed("secretbox", of_keys(keys, "Secretbox", |key| Box::new(Secretbox(key))))
        }
        (Provider::Kms(kms), Some(service)) => Link {
            prefix: format!("k8s:enc:kms:v2:{}:", kms.name).into_bytes(),
            transformer: Box::new(service.clone()),
        },
        (Provider::Identity | Provider::Kms(_), _) => Link {
            prefix: Vec::new(),
            transformer: Box::new(Identity),
        },
    }
}

fn of_keys(keys: &[Key], kind: &'static str, make: impl Fn(Secret) -> Box<dyn Transformer>) -> Chain {
    let links = keys.iter().map(|key| Link {
        prefix: format!("{}:", key.name).into_bytes(),
        transformer: make(key.secret.clone()),
    });
    Chain::new(links.collect(), TransformError::NoKey(kind))
}

/// The encryption of one resource, under the configuration that holds at the moment.
#[derive(Clone)]
pub struct ForResource {
    encryption: Arc<Encryption>,
    /// Under which rules may speak of the resource, the most exact one first.
    names: [String; 3],
}

impl ForResource {
    /// Calls `work` with the transformer of the first rule that speaks of the resource.
    fn with<T>(&self, work: impl FnOnce(&dyn Transformer) -> T) -> T {
        let current = self.encryption.current.load();
        let chain = self.names.iter().find_map(|name| current.chains.get(name));
        match chain {
            Some(chain) => work(chain),
            None => work(&Identity),
        }
    }
}

impl Transformer for ForResource {
    fn prepare(&self, stored: &Bytes) -> Option<BoxFuture<'static, ()>> {
        self.with(|transformer| transformer.prepare(stored))
    }

    fn open(&self, stored: &Bytes, key: &str) -> Result<Opened, TransformError> {
        self.with(|transformer| transformer.open(stored, key))
    }

    fn seal(&self, value: &[u8], key: &str) -> Result<Vec<u8>, TransformError> {
        self.with(|transformer| transformer.seal(value, key))
    }
}

/// How often the file of a configuration is looked at, as kube-apiserver does.
pub const RELOAD_INTERVAL: Duration = Duration::from_secs(60);
