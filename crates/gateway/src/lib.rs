//! The doors: one module per protocol. They call only the hub.
//!
//! All doors have the same shape, one file each:
//! - `options`: what an operator may set; `limits`: fixed bounds.
//! - `state`: what all connections of the door share: the hub, the options, pools and budgets.
//! - `server`: starts to listen, serves each connection, and stops in stages. It rejects connections above a bound.
//! - a session or one file per group of requests: decodes, calls the hub, encodes the answer.
//!
//! The doors share the modules beside them: `acceptor` (bounds and counts connections), `blocking` (runs reads and password
//! checks off the event loop), `error` (errors in ThingsBoard's terms), `budget` (bounds bytes held for clients), `refusals` (counts and logs refused messages and
//! logins), `text` and `answer` (write numbers, times and query results). MQTT has its own accepting thread and event loops,
//! because it keeps many small batches in flight.

mod acceptor;
pub mod answer;
mod blocking;
mod budget;
mod error;
pub mod http;
pub mod mqtt;
pub mod postgres;
mod refusals;
pub mod statements;
mod text;
