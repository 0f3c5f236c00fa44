//! Configuration: what was written ([`RawConfig`]), then what it means ([`Config`]).
//!
//! Sources, each overriding the one before: the defaults in this code, a file (`--config FILE`, or `tacho.toml` in the
//! data directory), the environment (`TACHO_<SECTION>_<KEY>`), flags. What no source knows is an error that names the
//! nearest known name; nothing is ignored. What is left out follows from the memory there is (`derive.rs`), where that is little.

mod derive;
mod error;
mod memory;
mod raw;
mod resolve;
mod sources;

pub(crate) use error::ConfigError;
pub(crate) use raw::RawConfig;
pub(crate) use resolve::{Config, LogFormat, PostgresConfig, StoreConfig, is_filter, parse_ttl};
pub(crate) use sources::Sources;

#[cfg(test)]
mod tests;
