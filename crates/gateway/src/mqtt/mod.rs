//! The MQTT door: MQTT 3.1, 3.1.1 and 5 over TCP and WebSocket, with TLS or without. Devices publish telemetry, and the door acks after durability.
//!
//! One thread accepts connections and hands them to the workers; the HTTP door hands over WebSockets. A worker is one thread with one event loop (`worker`) for
//! its share of the sockets. In each pass of the loop a worker reads from every ready socket, collects all messages in one
//! batch per durability class, appends each batch once, and sends the acks that the store's progress allows. A message costs
//! no allocation and wakes no thread. The only lock is that of the clock, which gives rows without a time their receipt time.
//!
//! The broker of `hub::broker` has the messages between clients; the door passes them on.

mod accept_thread;
mod acks;
mod clients;
mod connection;
mod deferred;
mod entrance;
mod entry;
mod ingest_batch;
pub mod limits;
mod options;
mod output;
mod provisioner;
mod qos2;
mod server;
mod session;
mod state;
mod stream;
mod traffic;
mod transport;
mod websocket_stream;
mod worker;
mod worker_handle;

pub use entrance::MqttEntrance;
pub(crate) use entrance::WebSocket;
pub use options::{MqttOptions, OWN_TOPICS};
pub use server::MqttDoor;
