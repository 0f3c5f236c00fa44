//! The probe of HBase: configuration, counters and tables, from the HTTP ports of the master and the region servers.

mod beans;
mod configuration;
mod probe;
mod tables;

pub(super) use probe::connect;
