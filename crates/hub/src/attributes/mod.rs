//! Attributes: named values of an entity, each with the time of its last update.
//!
//! A device writes those of [`Scope::Client`] and reads those of [`Scope::Shared`] too. Users write [`Scope::Shared`] and
//! [`Scope::Server`] and read all; other entities have [`Scope::Server`] only. They are in the key-value store, in the space `attributes` (`docs/format/attributes.md`). A write sets all of its
//! attributes or none. Changes of shared attributes go to the connections of the device when they are durable (`Pushes`), in
//! the order in which they were made; subscribers learn of all changes (`Feed`).

mod attribute_scope;
mod change;
mod error;
mod feed;
pub mod limits;
mod locks;
mod owner;
mod pushes;
mod read;
mod record;
mod scope;
mod tally;
mod writer;

pub(crate) use attribute_scope::{ATTRIBUTES, AttributeScope, of_tenant};
pub(crate) use change::{Change, removal, update, update_by_server};
pub use error::AttributeError;
pub(crate) use feed::Feed;
pub use feed::{AttributeWatch, Changed, Changes, TooManyWatched};
pub use owner::Owner;
pub(crate) use pushes::Pushes;
pub(crate) use read::read;
pub use scope::Scope;
pub(crate) use writer::Writer;
