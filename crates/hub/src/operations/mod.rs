//! The operations of the hub, by subject. All of them are methods of [`Hub`](crate::Hub).
//!
//! They name the domain modules of this crate, which hold state and decide; no domain module names the hub.

mod alarms;
pub(crate) mod devices;
mod entities;
mod entity_query;
pub(crate) mod installation;
pub(crate) mod packages;
pub(crate) mod rows;
pub(crate) mod tables;
