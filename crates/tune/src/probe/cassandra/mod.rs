//! The probe of Cassandra: virtual tables and the schema, through its native protocol.

mod connection;
mod probe;
mod protocol;

pub(super) use probe::connect;
