//! A whole server of sample kinds, asked by real clients: limits of requests, slow watchers, and the server's end.

#[cfg(test)]
use keelson_storage::EtcdConfig;

// `cfg(test)` always holds here; clippy wants to see it before it takes the helpers for test code.
#[cfg(test)]
mod admission;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod bodies;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod churn;
#[cfg(test)]
mod conversion;
#[cfg(test)]
mod corrupt;
#[cfg(test)]
mod deletion;
#[cfg(test)]
mod dynamic;
#[cfg(test)]
#[path = "../../../storage/tests/etcd_server.rs"]
#[allow(dead_code, reason = "some of it is for tests of stores")]
mod etcd_server;
#[cfg(test)]
mod faulty_store;
#[cfg(test)]
mod forwarded;
#[cfg(test)]
mod graceful_shutdown;
#[cfg(test)]
mod headers;
#[cfg(test)]
mod installed;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod panics;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod recalled;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod reservations;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod setting;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod stricter;
#[cfg(test)]
#[path = "../../../registry/testing/swapped.rs"]
mod swapped;
#[cfg(test)]
mod timelines;
#[cfg(test)]
mod undecrypted;
#[cfg(test)]
mod unread;
#[cfg(test)]
mod upserts;
#[cfg(test)]
mod watches;
