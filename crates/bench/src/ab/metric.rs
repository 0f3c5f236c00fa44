//! The figures of a run that are compared.

use serde::{Deserialize, Serialize};

use load::statistics::paired::Better;

/// The kind of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// Operations per second of a closed loop.
    Rate,
    /// Operations per second of a load on a schedule, which determines the rate.
    PlannedRate,
    /// A percentile of latency. It describes rare operations, so a difference in few blocks counts.
    Percentile,
    /// The cost of an operation.
    Cost,
}

impl FigureKind {
    /// The direction that is better.
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
    /// The key in `Run::values`.
    pub name: String,
    /// The kind of the figure.
    pub kind: FigureKind,
    /// The change that counts as none, as a share.
    pub margin: f64,
}

/// The ratio of two arithmetic means over all blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Means {
    /// B / A.
    pub ratio: f64,
    /// The standard error of the ratio.
    pub error: f64,
}
