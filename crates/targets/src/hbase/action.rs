//! The keys of a phase.

use serde::Deserialize;
use toml::Table;

use load::scenario::{Phase, PhaseKind};

/// What a load phase does with the table before its operations.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    /// Makes it if there is none.
    #[default]
    Create,
    /// Drops it and makes it again.
    Recreate,
    /// Drops it. No operation runs.
    Drop,
}

/// Keys of a phase.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PhaseKeys {
    /// Load phases: what happens to the table.
    pub(super) action: Option<Action>,
    /// Load phases: whether regions write their memory into files at the end.
    pub(super) flush: Option<bool>,
    /// The rows of each connection (`--rows`).
    pub(super) rows: Option<u64>,
}

impl PhaseKeys {
    /// Reads the keys of a phase, which are the same for all its mixes.
    pub(super) fn of(phase: &Phase) -> Result<Self, String> {
        let place = phase.place();
        let owns = phase.mixes.iter().map(|mix| mix.options::<Self>(&Table::new(), &place));
        let owns = owns.collect::<Result<Vec<_>, _>>()?;
        let keys = owns.first().copied().unwrap_or_default();
        if owns.iter().any(|other| *other != keys) {
            return Err(format!("{place}: `action`, `flush` and `rows` are the same for all its mixes"));
        }
        if phase.kind != PhaseKind::Load && (keys.action.is_some() || keys.flush.is_some()) {
            return Err(format!("{place}: `action` and `flush` are for phases of kind load; leave them out"));
        }
        if keys.rows == Some(0) {
            return Err(format!("{place}: rows = 0; use 1 or more"));
        }
        Ok(keys)
    }
}
