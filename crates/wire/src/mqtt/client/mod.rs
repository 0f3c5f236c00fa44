//! The MQTT client without I/O: commands in, bytes out; bytes in, events out. MQTT 3.1, 3.1.1 and 5.
//!
//! [`Connection`] is one connection: the handshake, and the packets of the server in their order. It keeps nothing of a
//! message. A load generator that counts its messages itself needs no more.
//!
//! [`Session`] adds the messages: identifiers, queue, flow control, redelivery after a new connection, QoS 2 in both
//! directions, subscriptions.
//!
//! Both take the unread bytes of the caller's buffer and say how many they used, as [`super::decode`] does. The caller has the
//! socket and the clock: it opens connections, sends PINGREQ in time and gives up on a silent server.
//!
//! Neither resolves topic aliases: a server sends them only to a client whose CONNECT announces a maximum.

mod connection;
mod error;
mod event;
mod incoming;
mod outgoing;
mod session;

pub use connection::{Connection, ServerLimits};
pub use error::{Fault, ReceiveError, SendError};
pub use event::Event;
pub use session::{Limits, Session};
