//! The probe of the host. It reads files of `/proc` and `/sys`, and changes nothing.

mod counters;
mod facts;
mod files;
mod machine;
mod probe;
mod settings;

#[cfg(test)]
mod tests;

pub use files::{HostFiles, HostRoot};
pub(super) use machine::machine;
pub use probe::HostProbe;
