//! The load generator's commands: runs, comparisons of two sides, searches for a capacity, reports, and results of other tools.
//!
//! `load` has the engine and `targets` the drivers; this crate combines them. It treats every server as a black box: it speaks
//! the protocols that the server offers and uses no internal interface, so it measures our own server in the same way as any
//! other.

pub mod ab;
pub mod bundles;
pub mod capacity;
pub mod command;
pub mod compare;
pub mod import;
mod limits;
pub mod report;
pub mod runner;

pub use load::{Error, Result};
pub use targets::Context;
