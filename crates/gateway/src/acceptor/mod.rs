//! The accepting side of the doors on tokio: it bounds connections, counts them, and stops in stages.

mod accept;
mod per_address;
mod permit;
mod stop;

pub(crate) use accept::{Accepted, Acceptor, Rejection};
pub(crate) use per_address::{AddressLimiter, AddressPermit};
pub(crate) use permit::ConnectionPermit;
pub(crate) use stop::{Stop, StopSignal};
