//! The server of the HTTP door: accepts connections, serves their requests by the list of routes, and stops in stages.

mod admission;
mod counted_answers;
mod door_stream;
mod interfaces;
mod listener;
mod mqtt_socket;
mod request_body;
mod routes;

pub(crate) use self::interfaces::{Interfaces, LineProtocol, ServedLines};
pub(crate) use self::listener::serve;
#[cfg(test)]
pub(crate) use self::routes::{described_routes, own_routes};
