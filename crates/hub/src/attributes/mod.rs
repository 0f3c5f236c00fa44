//! Attributes: named values of a device, each with the time of its last update.
//!
//! A device writes those of [`Scope::Client`] and reads those of [`Scope::Shared`] too. Users write [`Scope::Shared`] and
//! [`Scope::Server`] and read all. They are in the store of keys, in the space `attributes` (`docs/format/attributes.md`). A write sets all of its
//! attributes or none. Changes of shared attributes go to the connections of the device when they are durable (`Pushes`), in
//! the order in which they were made.

mod change;
mod error;
pub mod limits;
mod locks;
mod place;
mod pushes;
mod read;
mod record;
mod scope;
mod tally;

pub(crate) use change::{Change, removal, update};
pub use error::AttributeError;
pub(crate) use locks::Locks;
pub(crate) use place::{ATTRIBUTES, Place, of_device, of_tenant};
pub(crate) use pushes::Pushes;
pub(crate) use read::read;
pub use scope::Scope;
