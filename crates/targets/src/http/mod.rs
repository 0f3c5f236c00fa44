//! HTTP/1.1 and HTTP/2 servers.
//!
//! `driver.rs` runs the scenarios, `options.rs` has their keys, `protocol/` is the client of the load, with a connection
//! of HTTP/1.1 in `http1.rs` and of HTTP/2 in `http2.rs`. `template.rs` has the templates of requests, `request.rs` the
//! prepared requests, `expect.rs` the expected answers, `json.rs` those of JSON, `variables.rs` what a client
//! keeps from one answer for later requests. `probe.rs` is a request outside of the load.

mod driver;
mod expect;
mod http1;
mod http2;
mod json;
mod options;
pub mod probe;
mod protocol;
mod request;
mod template;
mod variables;

pub(crate) use driver::KIND;
pub use expect::Expect;
pub use json::{JsonExpect, JsonOptions};
pub use protocol::{GroupConfig, Http, Order, Tally, Version};
pub use request::Operation;
pub use template::{Data, Request};
pub(crate) use template::{has_data, has_key};
