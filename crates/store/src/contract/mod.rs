//! The contract in three parts: a user of a store names the part that it needs.

mod maintenance;
mod reader;
mod writer;

pub use maintenance::Maintenance;
pub use reader::Reader;
pub use writer::Writer;

/// A backend that keeps rows. All calls are safe from any thread.
pub trait Store: Writer + Reader + Maintenance {}

impl<S: Writer + Reader + Maintenance> Store for S {}
