//! The machine itself: its processors, memory, system calls and disks.
//!
//! `driver.rs` runs the scenarios and has their keys. `blocking.rs` carries out the kernels: `compute.rs`, `memory.rs`
//! and `kernel_calls.rs`, with buffers and files from `pool.rs`. `fio/` measures disks.

mod blocking;
mod compute;
mod driver;
pub mod fio;
mod kernel_calls;
mod memory;
mod pool;

pub use blocking::{Host, Kernel};
pub(crate) use driver::KIND;
