//! Writes log lines to standard error.

use std::io;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, ConfigError, LogFormat};

/// The variable that overrides the configured filter for one run.
const VARIABLE: &str = "TACHO_LOG";

/// Starts logging as configured, and the logging of panics. Call it once per process.
pub(crate) fn start(config: &Config) -> Result<(), ConfigError> {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if crate::config::is_filter(&text) => text,
        Ok(value) => {
            let expected = "a level (error, warn, info, debug, trace) or a filter such as info,gateway=debug";
            return Err(ConfigError::Variable { name: VARIABLE.into(), value, expected });
        }
        Err(_) => config.log.level.clone(),
    };
    let filter: Targets = filter.parse().expect("BUG: the filter was checked");
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(false);
    let lines = match config.log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
    crate::panics::log_panics();
    Ok(())
}
