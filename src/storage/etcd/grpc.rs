//! etcd's API over gRPC, by the crate etcd-client.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmType, Client, Error, WatchOptions, WatchStream};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};

use super::api::{
    Alarm, Answers, Api, ApiError, FailureKind, Header, Range, Ranged, Refusal, Status, Txn, TxnDone, WatchAnswer,
    WatchRequest,
};
use super::connect::{self, Connections};
use super::convert;
use crate::{EtcdConfig, LeaseId, Revision, StoreError};

/// How long a member may take to say how it is.
const STATUS: Duration = Duration::from_secs(3);

/// Connections to the members of a configuration.
pub(super) struct Grpc {
    /// Of the runtime that connected; for what is no single request of the kv service.
    client: Client,
    connections: Connections,
    config: EtcdConfig,
}

impl Grpc {
    /// Reaches no member yet.
    pub async fn connect(config: &EtcdConfig) -> Result<Grpc, StoreError> {
        let client = connect::client(config).await?;
        let connections = Connections::new(&client, config);
        let config = config.clone();
        Ok(Grpc {
            client,
            connections,
            config,
        })
    }

    async fn status_of(&self, endpoint: &str) -> Result<Status, ApiError> {
        let config = EtcdConfig {
            endpoints: vec![endpoint.to_owned()],
            ..self.config.clone()
        };
        let client = connect::client(&config).await;
        let client = client.map_err(|error| ApiError::new(FailureKind::Refused(Refusal::Other), error.to_string()))?;
        let mut maintenance = client.maintenance_client();
        match tokio::time::timeout(STATUS, maintenance.status()).await {
            Ok(status) => status.map(|status| convert::status(&status)).map_err(failed),
            Err(_) => Err(ApiError::new(FailureKind::Unavailable, "no answer in time")),
        }
    }
}

fn failed(error: Error) -> ApiError {
    convert::api_error(&error)
}

impl Api for Grpc {
    fn range<'a>(&'a self, range: &'a Range<'a>) -> BoxFuture<'a, Result<Ranged, ApiError>> {
        async move {
            let mut kv = self.connections.kv().await;
            let got = kv.get(range.key, Some(convert::range_options(range))).await;
            convert::ranged(&got.map_err(failed)?)
        }
        .boxed()
    }

    fn txn<'a>(&'a self, txn: &'a Txn<'a>) -> BoxFuture<'a, Result<TxnDone, ApiError>> {
        async move {
            let mut kv = self.connections.kv().await;
            let done = kv.txn(convert::txn(txn)).await;
            convert::txn_done(&done.map_err(failed)?)
        }
        .boxed()
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: &'a [u8],
        lease: Option<LeaseId>,
    ) -> BoxFuture<'a, Result<Header, ApiError>> {
        async move {
            let mut kv = self.connections.kv().await;
            let done = kv.put(key, value, Some(convert::put_options(lease))).await;
            Ok(convert::header(done.map_err(failed)?.header()))
        }
        .boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), ApiError>> {
        async move {
            let mut kv = self.connections.kv().await;
            let done = kv.compact(revision.0 as i64, None).await;
            done.map(drop).map_err(failed)
        }
        .boxed()
    }

    fn grant(&self, seconds: i64) -> BoxFuture<'_, Result<LeaseId, ApiError>> {
        async move {
            let granted = self.client.lease_client().grant(seconds, None).await;
            granted.map(|granted| LeaseId(granted.id())).map_err(failed)
        }
        .boxed()
    }

    fn time_to_live(&self, id: LeaseId) -> BoxFuture<'_, Result<i64, ApiError>> {
        async move {
            let left = self.client.lease_client().time_to_live(id.0, None).await;
            left.map(|left| left.ttl()).map_err(failed)
        }
        .boxed()
    }

    fn status(&self) -> BoxFuture<'_, Result<Status, ApiError>> {
        async move {
            let status = self.client.maintenance_client().status().await;
            status.map(|status| convert::status(&status)).map_err(failed)
        }
        .boxed()
    }

    fn statuses(&self) -> BoxFuture<'_, Vec<(String, Result<Status, ApiError>)>> {
        let each = self.config.endpoints.iter();
        join_all(each.map(|endpoint| async move { (endpoint.clone(), self.status_of(endpoint).await) })).boxed()
    }

    fn alarms(&self) -> BoxFuture<'_, Result<Vec<Alarm>, ApiError>> {
        async move {
            let mut maintenance = self.client.maintenance_client();
            let raised = maintenance.alarm(AlarmAction::Get, AlarmType::None, None).await;
            let raised = raised.map_err(failed)?;
            let alarms = raised.alarms().iter().map(|alarm| Alarm {
                member_id: alarm.member_id(),
                kind: format!("{:?}", alarm.alarm()),
            });
            Ok(alarms.collect())
        }
        .boxed()
    }

    fn watch<'a>(&'a self, watch: &'a WatchRequest<'a>) -> BoxFuture<'a, Result<Box<dyn Answers>, ApiError>> {
        async move {
            let mut watches = self.client.watch_client().max_decoding_message_size(usize::MAX);
            let mut options = WatchOptions::new().with_start_revision(i64::try_from(watch.start.0).unwrap_or(i64::MAX));
            if watch.prefix {
                options = options.with_prefix();
            }
            if watch.progress {
                options = options.with_progress_notify();
            }
            if watch.previous {
                options = options.with_prev_key();
            }
            let stream = watches.watch(watch.key, Some(options)).await.map_err(failed)?;
            Ok(Box::new(Stream(stream)) as Box<dyn Answers>)
        }
        .boxed()
    }
}

struct Stream(WatchStream);

impl Answers for Stream {
    fn message(&mut self) -> BoxFuture<'_, Result<Option<WatchAnswer>, ApiError>> {
        async {
            let answer = self.0.message().await.map_err(failed)?;
            answer.as_ref().map(convert::watch_answer).transpose()
        }
        .boxed()
    }

    fn request_progress(&mut self) -> BoxFuture<'_, Result<(), ApiError>> {
        async { self.0.request_progress().await.map_err(failed) }.boxed()
    }
}
