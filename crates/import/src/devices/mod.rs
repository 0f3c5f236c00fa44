//! Imports of devices' data: each row of a CSV file belongs to a device.
//!
//! `plan.rs` reads the files once, `store_rows.rs` and `upload.rs` read them again and store the rows.

mod destination;
mod header;
mod plan;
mod report;
mod rows;
mod store_rows;
mod upload;
mod verify;

pub use destination::{Destination, KnownDevice, UnknownDevice};
pub use plan::{DeviceOf, FilePlan, Plan, Timing};
pub use report::text;
pub use rows::Roles;
pub use store_rows::{DeviceRows, Imported, Settings, examine, import, summary};
pub use upload::{Sent, upload};
