//! Exporters: each sends the durable rows of a sensor to a broker, an address, readers of mail or a database, at least once.
//!
//! An exporter follows the output of its sensor (`crate::exporter`). The sensor computes without it: a target that is absent or slow
//! delays only the exporter itself.

mod email;
mod limits;
mod manager;
mod mqtt;
mod row;
mod webhook;

pub(crate) use manager::manage;
