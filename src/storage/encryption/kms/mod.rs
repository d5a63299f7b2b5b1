//! Key management services, version 2 of their protocol: a service on a unix socket encrypts a seed, and the seed
//! encrypts values here. The service is asked once for each seed that is met, and once a minute how it is.

mod call;
#[cfg(test)]
mod fake;
mod keeper;
mod message;
mod seeds;
mod service;
mod stored;
#[cfg(test)]
mod tests;

pub use keeper::ServiceError;
pub use service::Service;
