//! The accepting side of the doors: it bounds connections and requests, counts them, and stops in stages.

mod accept;
mod gate;
mod identify;
mod limits;
mod per_address;
mod permit;
mod stop;

pub(crate) use accept::{Accepted, Acceptor};
pub(crate) use gate::Gate;
pub(crate) use identify::{NotIdentified, PROXY_PROTOCOL};
pub(crate) use per_address::{AddressLimiter, AddressPermit};
pub(crate) use permit::ConnectionPermit;
pub(crate) use stop::{Stop, StopSignal};
