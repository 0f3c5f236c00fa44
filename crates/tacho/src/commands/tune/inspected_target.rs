//! A target that was looked at.

use tune::probe::Probe;
use tune::{Observation, Product, Target, probe};

/// The exit code if the command could not do what it was asked for.
pub(super) const COULD_NOT: u8 = 2;

/// A target that was looked at.
pub(super) struct InspectedTarget {
    pub(super) target: Target,
    /// The target as the user has written it.
    pub(super) written_target: String,
    /// The target without its password.
    pub(super) shown_target: String,
    pub(super) context: probe::Context,
    pub(super) probe: Box<dyn Probe>,
    pub(super) product: &'static Product,
    pub(super) observation: Observation,
}
