//! The promise of acknowledgements: every acknowledged point survives kills of the server.
//!
//! `driver.rs` runs the scenarios and has their keys. `kills.rs` kills and restarts the server and reads the points back,
//! `writer.rs` is one device, `points.rs` has the points that were sent and acknowledged.

mod driver;
mod kills;
mod points;
mod writer;

pub(crate) use driver::KIND;
pub use kills::{CLASSES, Kill, Ledger, Options};
pub use points::{LedgerCheck, PointLedger};
pub use writer::Timing;
