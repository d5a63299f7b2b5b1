//! Access: what a request asks for, who asks, whether they may, and when it is their turn.
//!
//! [`request_info`] → [`authn`] → [`impersonation`] → [`flowcontrol`] → [`authz`]. What decisions read of objects comes
//! through [`lister`]; nothing here knows stores or handlers.

pub mod authn;
pub mod authz;
pub mod flowcontrol;
pub mod impersonation;
pub mod lister;
pub mod request_info;
pub mod user;
