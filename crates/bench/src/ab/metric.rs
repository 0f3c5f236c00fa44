//! The figures of a run that are compared.

use serde::{Deserialize, Serialize};

use crate::statistics::paired::Better;

/// What a figure says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Operations per second, as fast as answers come.
    Rate,
    /// Operations per second of a load on a schedule, which says how many.
    PlannedRate,
    /// A percentile of time. It tells of what is rare, so what few blocks hold counts.
    Percentile,
    /// What an operation costs.
    Cost,
}

impl Kind {
    /// Which direction is good.
    pub fn better(self) -> Better {
        match self {
            Self::Rate | Self::PlannedRate => Better::Higher,
            Self::Percentile | Self::Cost => Better::Lower,
        }
    }
}

/// A figure of a run that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name in `Run::values`.
    pub name: String,
    /// What it says.
    pub kind: Kind,
    /// Change that counts as none, as a share.
    pub margin: f64,
}

/// The ratio of two arithmetic means over all blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// B / A.
    pub ratio: f64,
    /// Its standard error.
    pub error: f64,
}
