//! The arguments `--data` and `--config`, which every command on a data directory has.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Config, ConfigError, Sources};

/// The data directory and the configuration file.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DataArgs {
    /// Data directory [default: the one that the variable TACHO_DATA names, or the file of --config; otherwise tacho-data in the
    /// working directory]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Configuration file [default: tacho.toml in the data directory, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl DataArgs {
    /// The configuration that results from flags, environment and file.
    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        self.sources().load()
    }

    /// The sources of that configuration.
    pub(crate) fn sources(&self) -> Sources {
        let environment = std::env::vars_os().collect();
        Sources { config: self.config.clone(), data: self.data.clone(), environment, memory: None }
    }
}
