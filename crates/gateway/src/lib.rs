//! The front doors: one module per protocol, all calling hub only.

pub mod answer;
mod budget;
pub mod http;
pub mod mqtt;
mod number;
pub mod postgres;
mod refusals;
mod seats;
mod sources;
pub mod statements;
mod utc_text;
