//! Test-only tools: disks that fail and disks that are slow on command, stores with known content,
//! processes that are to end.

pub mod faulty_disk;
pub mod fleet;
pub mod own_process;
pub mod parts;
pub mod slow_disk;

pub use faulty_disk::{FaultyDisk, Survivors};
pub use slow_disk::{Act, Held, Operation, SlowDisk};
