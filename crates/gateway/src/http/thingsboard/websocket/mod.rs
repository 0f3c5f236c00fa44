//! `/api/ws` and `/api/ws/plugins/telemetry?token=`: ThingsBoard's WebSockets for live values and history.
//!
//! One session has two halves that run as one task. `inbound` reads frames into a short queue. `session` handles the messages
//! one by one, reads the store, and is the only one that writes. A client that does not read stops only its own session: the
//! hub keeps the newest value per key for it.

mod alarm_queries;
mod alarm_session;
mod attribute_session;
mod attributes;
mod close_reason;
mod commands;
mod entity_json;
mod entity_read;
mod general_commands;
mod inbound;
mod interface;
mod open;
mod outbound;
mod pending_read;
mod queries;
mod query_commands;
mod query_session;
mod query_update;
mod session;
mod subscriptions;
mod token;
mod update;
mod update_filter;
mod watch;

pub(crate) use open::routes;
