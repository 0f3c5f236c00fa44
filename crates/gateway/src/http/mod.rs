//! HTTP: the server, ThingsBoard's interfaces for devices and applications, and our own.
//!
//! It speaks HTTP/1.1, with TLS or without. A telemetry request gets 2xx after the store has made it as durable as the device's
//! profile requires. Reads run on blocking threads, a bounded number at a time. Every refusal is JSON of one shape
//! (`tools/error_response.rs`), and is counted by its reason.
//!
//! - `server`: the listener, and the routes of a door.
//! - `device`, `thingsboard`, `tacho`: the interfaces. They do not know each other.
//! - `shapes`: forms of ThingsBoard's JSON that these share.
//! - `tools`: what all interfaces over HTTP use, also those of other products beside this folder.
//!
//! `docs/protocol/thingsboard-rest.md` lists the supported requests of ThingsBoard.

mod device;
pub mod limits;
mod options;
mod page;
pub(crate) mod server;
mod shapes;
mod tacho;
mod thingsboard;
pub(crate) mod tools;

pub use self::options::HttpOptions;
pub use self::page::{Page, PageFile};
pub use self::tacho::{report_json, rewritten_json};
