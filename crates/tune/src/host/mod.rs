//! The probe of the host. It reads files of `/proc` and `/sys`, and changes nothing.

mod counters;
mod facts;
mod files;
mod machine;
mod probe;
mod settings;

#[cfg(test)]
mod tests;

pub use counters::Counters;
pub use files::{HostFiles, HostRoot};
pub(crate) use machine::machine;
pub use probe::{ProbeError, observe};
