//! `/api/ws/plugins/telemetry?token=`: ThingsBoard's WebSocket for live values and history.
//!
//! One session has two halves that run as one task. `inbound` reads frames into a short queue. `session` handles the messages
//! one by one, reads the store, and is the only one that writes. A client that does not read stops only its own session: the
//! hub keeps the newest value per key for it.

mod close_reason;
mod commands;
mod inbound;
mod open;
mod outbound;
mod pending_read;
mod session;
mod subscriptions;
mod update;
mod watch;

pub(crate) use open::open;
