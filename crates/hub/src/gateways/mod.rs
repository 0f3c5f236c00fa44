//! Gateways: devices that speak for devices behind them.
//!
//! A gateway names devices of its own tenant. Devices that it names first are added to the registry by a thread of their own
//! (`Creations`), because every change of the registry waits for the disk. While a gateway's connection speaks for a device, the
//! connection has an outbox for it, so calls and changes of attributes take the same way as for a device with a connection
//! of its own. Only one connection of a gateway has the outbox of a device: the one that connected it last.

mod creations;
pub mod limits;

pub use creations::{Creation, CreationRefused};
pub(crate) use creations::{Creations, NewBehind};
