//! Priority and fairness: requests are sorted into levels by who sends them and what they ask for; each level has seats
//! of its own, lends those that it does not need, and shares them fairly among the flows in it.
//!
//! The core is pure: [`classify`] says whose a request is, [`work`] what it costs, [`dealer`] which queues its flow may
//! use, [`queues`] who comes next, [`limits`] how many seats a level has. They know no clock; tests replay them.
//! [`level`] and [`control`] put them behind locks for the workers of a server, [`dump`] and [`metrics`] show them.

pub mod classify;
pub mod control;
pub mod dealer;
pub mod histogram;
pub mod in_flight;
pub mod integrator;
pub mod level;
pub mod limits;
pub mod metrics;
pub mod queues;
pub mod seat_seconds;
pub mod spec;
pub mod stats;
pub mod under_way;
pub mod watchers;
pub mod work;

pub use control::{FlowControl, PERIOD};
pub use level::Ticket;
