//! Test-only tools: a disk that fails on command.

pub mod faulty_disk;

pub use faulty_disk::{FaultyDisk, Survivors};
