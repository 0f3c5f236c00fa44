//! Virtual sensors in GSN's form: sources with windows, SQL over them, and an output that others can read.
//!
//! [`Descriptor`] is what a file says, [`Plan`] a descriptor that has been checked, with its SQL compiled, and [`Sensor`] its
//! execution: elements in, rows out. Time comes from the caller.
//!
//! `docs/sensors.md` describes the files, what of GSN is there, and the differences.

mod container;
pub mod descriptor;
mod fault;
pub mod limits;
pub mod plan;
mod run;
mod script;
mod sql;

#[cfg(test)]
mod tests;

pub use container::Container;
pub use descriptor::Descriptor;
pub use fault::{Fault, FaultKind, Faults, Note, TextPosition};
pub use plan::Plan;
pub use run::{Chart, Checkpoint, Counters, NeededElements, OutputRow, Sensor};
pub use sql::{Datum, Row};
