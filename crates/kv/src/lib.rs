//! The ordered key-value engine: broker sessions, retained messages, attributes of devices, persistent commands.
//!
//! The contract knows spaces, keys, batches and durability. It knows no tenant, no protocol and no backend. [`MemoryStore`] is the
//! reference and short enough to be read as the specification.

#![warn(missing_docs)]

mod batch;
mod check;
mod checkpoint;
mod contract;
pub mod dump;
mod engine;
mod error;
mod expiry;
pub mod limits;
pub mod memory;
mod progress;
mod range;
mod snapshot;
mod space;
mod status;
mod types;

pub use batch::{Operation, WriteBatch};
pub use check::{CheckReport, RecordProgress};
pub use checkpoint::{Checkpoint, CheckpointFile};
pub use contract::KeyValueStore;
pub use engine::{EngineOptions, EngineStore};
pub use error::KvError;
pub use expiry::{Expiry, SweepBudget, Swept};
pub use memory::MemoryStore;
pub use model::Blame;
pub use progress::{Progress, ProgressWatcher, Sequence};
pub use range::{Direction, KeyRange};
pub use snapshot::{Scan, Snapshot};
pub use space::Space;
pub use status::KvStatus;
pub use types::{Key, Value};
