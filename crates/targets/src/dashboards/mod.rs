//! Applications of a server with ThingsBoard's interface: dashboards that follow devices over WebSocket, pages of many devices,
//! devices that a client creates, and alarms that rules raise.
//!
//! `driver.rs` runs the scenarios and `options.rs` has their keys. `protocol.rs` is all kinds of clients: `device.rs` publishes over
//! MQTT, `live.rs` and `page.rs` are dashboards over the WebSocket of `link.rs`, and `creator.rs` creates devices over HTTP. `message.rs` has what
//! devices send, `answers.rs` what a WebSocket answers. `followed.rs` knows the newest value of each device at each socket. `rules.rs` makes
//! device profiles with rules, and `watch.rs` looks for their alarms. `unread.rs` has sockets that never read, and `verdict.rs` judges a phase.

mod answers;
mod creator;
mod device;
mod driver;
mod link;
mod live;
mod message;
mod newest_messages;
mod options;
mod page;
mod protocol;
mod rules;
mod stalled_dashboards;
mod verdict;
mod watch;

pub(crate) use driver::KIND;
