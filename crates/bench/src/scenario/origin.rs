//! What a scenario was made from, so that a message can say how to make it again.

use serde::{Deserialize, Serialize};

/// Where a scenario came from. It may hold passwords, as the scenario itself does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The name of a built-in one, or the file as it was given.
    pub name: String,
    /// The keys that were changed, `path.to.key=value`, in their order.
    pub sets: Vec<String>,
}
