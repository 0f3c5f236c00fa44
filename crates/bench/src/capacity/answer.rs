//! The answer of a search and its sentence.

use serde::{Deserialize, Serialize};

use load::statistics::Interval;

/// The end of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    /// The capacity was found.
    Found {
        /// Rate at which half of the trials meet the objective, operations per second.
        rate_per_s: f64,
        /// The 95 % interval of the rate.
        interval: Interval,
        /// The rate at which nine of ten trials meet the objective.
        safe_per_s: f64,
        /// The number of steps.
        trials: usize,
        /// Whether the interval has the requested precision.
        precise: bool,
    },
    /// Every rate passed, up to the largest possible one.
    AtLeast {
        /// The largest rate that passed, operations per second.
        rate_per_s: f64,
        /// The reason why the search stopped.
        because: String,
    },
    /// No rate passed.
    Below {
        /// The smallest rate that was tried, operations per second.
        rate_per_s: f64,
        /// The reason why it failed.
        because: String,
    },
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Found { rate_per_s, interval, safe_per_s, trials, precise } => {
                write!(
                    f,
                    "capacity {rate_per_s:.0}/s (95 % interval {:.0} to {:.0}), safe {safe_per_s:.0}/s (nine of ten trials \
                     pass), from {trials} trials",
                    interval.low, interval.high
                )?;
                if *precise {
                    Ok(())
                } else {
                    write!(f, "; the interval is wider than asked for: the edge is not sharp")
                }
            }
            Self::AtLeast { rate_per_s, because } => {
                write!(f, "capacity is at least {rate_per_s:.0}/s; it was not reached: {because}")
            }
            Self::Below { rate_per_s, because } => {
                write!(f, "no rate meets the objective, not even {rate_per_s:.0}/s: {because}")
            }
        }
    }
}
