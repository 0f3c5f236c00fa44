//! The time to live of a table, as an option and as text.

use std::time::Duration;

use model::time::shown_duration;

use crate::config::parse_ttl;

/// The time to live of rows; `None` keeps them forever. Clap would take a plain `Option` for an optional argument.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ttl(pub(super) Option<Duration>);

impl Ttl {
    /// Reads the option.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        parse_ttl(text).map(Self)
    }

    /// Whole seconds.
    pub(super) fn seconds(self) -> Option<u64> {
        self.0.map(|ttl| ttl.as_secs())
    }
}

/// The text of a time to live.
pub(super) fn kept(ttl_s: Option<u64>) -> String {
    ttl_s.map_or_else(|| "forever".to_owned(), |seconds| shown_duration(Duration::from_secs(seconds)))
}
