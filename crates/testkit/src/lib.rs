//! Tools for tests: disks that fail or wait on command, stores with known content or on a slow link, and tests that end their process.

pub mod faulty_disk;
pub mod fleet;
pub mod own_process;
pub mod parts;
pub mod remote_store;
pub mod slow_disk;

pub use faulty_disk::{FaultyDisk, Survivors};
pub use remote_store::RemoteStore;
pub use slow_disk::{Act, HeldOperations, Operation, SlowDisk};
