//! The action of a load phase: it fills or drops the tables.

use serde::Deserialize;
use toml::Table;

use load::scenario::Phase;

/// Keys of a phase.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseOptions {
    #[serde(default)]
    action: Action,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    /// Creates and fills the tables.
    #[default]
    Load,
    /// Drops the tables.
    Cleanup,
}

pub(super) fn action(phase: &Phase) -> std::result::Result<Action, String> {
    let place = phase.place();
    let owns = phase.mixes.iter().map(|mix| mix.options::<PhaseOptions>(&Table::new(), &place));
    let owns = owns.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(owns.first().map(|own| own.action).unwrap_or_default())
}
