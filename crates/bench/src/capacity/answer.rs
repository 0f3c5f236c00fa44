//! The answer of a search and its sentence.

use serde::{Deserialize, Serialize};

use crate::statistics::Interval;

/// The end of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Answer {
    /// The capacity.
    Found {
        /// Rate at which half of the trials meet the objective, operations per second.
        rate_per_s: f64,
        /// Its 95 % interval.
        interval: Interval,
        /// Rate at which nine of ten trials meet it.
        safe_per_s: f64,
        /// Steps behind it.
        trials: usize,
        /// Whether the interval is as narrow as was asked for.
        precise: bool,
    },
    /// Every rate passed, up to the largest that could be tried.
    AtLeast {
        /// The largest rate that passed, operations per second.
        rate_per_s: f64,
        /// What kept the search from going on.
        because: String,
    },
    /// No rate passed, down to this one.
    Below {
        /// The smallest rate that was tried.
        rate_per_s: f64,
        /// Why it did not pass.
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
