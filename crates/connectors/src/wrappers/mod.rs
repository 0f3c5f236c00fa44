//! Wrappers: each reads one kind of source outside of the store.

mod blocking;
mod csv;
mod elements;
mod failure;
mod http;
mod http_get;
mod jdbc;
mod manager;
mod mqtt;
mod payload;
mod periodic;
mod read;
mod remote;
mod replay;
mod sink;
mod source;
mod tie_order;
mod udp;

pub(crate) use manager::manage;
