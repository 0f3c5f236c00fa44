//! The origin of a scenario, so that a message can say how to load it again.

use serde::{Deserialize, Serialize};

/// The origin of a scenario. It may contain passwords, as the scenario does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The name of a built-in scenario, or the file as given.
    pub name: String,
    /// The changed keys, `path.to.key=value`, in order.
    pub sets: Vec<String>,
}
