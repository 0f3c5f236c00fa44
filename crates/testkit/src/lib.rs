//! Test-only tools: disks that fail and disks that are slow on command.

pub mod faulty_disk;
pub mod slow_disk;

pub use faulty_disk::{FaultyDisk, Survivors};
pub use slow_disk::{Act, Held, Operation, SlowDisk};
