//! The configuration: as written ([`RawConfig`]), then resolved ([`Config`]).
//!
//! Each source overrides the ones before: the defaults in this code, a file (`--config FILE`, or `tacho.toml` in the data
//! directory), the environment (`TACHO_<SECTION>_<KEY>`), flags. An unknown name is an error that suggests the nearest known
//! name. On small machines, settings that are left out are derived from the memory (`derive.rs`).

mod derive;
mod door;
mod error;
mod memory;
mod raw;
mod resolve;
mod sources;
mod tls;
mod usage;

pub(crate) use error::ConfigError;
pub(crate) use memory::Memory;
pub(crate) use raw::RawConfig;
pub(crate) use resolve::{
    Config, LogFormat, PostgresConfig, SENSORS_DIRECTORY, StoreConfig, is_filter, listen_address, parse_ttl,
};
pub(crate) use sources::Sources;
pub(crate) use usage::{Counted, file_bytes, group_bytes, own_bytes};

#[cfg(test)]
mod tests;
