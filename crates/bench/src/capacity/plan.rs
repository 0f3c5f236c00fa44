//! The plan of a search for a capacity, and its next step.

use super::{Answer, Objective};

/// Samples behind a quantile q that make it worth judging: 100 / (1 - q).
pub(super) const SAMPLES_BEHIND_QUANTILE: f64 = 100.0;

/// A step lasts at least this many of the longest regular stalls, so that none is judged by luck.
const STALLS_PER_STEP: f64 = 3.0;

/// How to search.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What must hold.
    pub objective: Objective,
    /// First rate, operations per second.
    pub start_per_s: f64,
    /// Largest rate that is tried.
    pub rate_per_s_max: f64,
    /// Factor of the ramp.
    pub ramp: f64,
    /// Where bisection ends: distance of pass and fail as a share.
    pub resolution: f64,
    /// Trials at each rate around the edge.
    pub repeats: usize,
    /// Largest half width of the interval, as a share, with which the search is content.
    pub precision: f64,
    /// Most steps.
    pub steps_max: usize,
    /// Shortest step, seconds.
    pub step_s_min: f64,
    /// Distance of regular stalls if any are known, seconds.
    pub stall_period_s: Option<f64>,
    /// Seed of the order of repeats and of the interval.
    pub seed: u64,
}

impl Plan {
    /// The usual search from a first rate.
    pub fn new(objective: Objective, start_per_s: f64, seed: u64) -> Self {
        Self {
            objective,
            start_per_s,
            rate_per_s_max: 1e9,
            ramp: 1.5,
            resolution: 0.03,
            repeats: 3,
            precision: 0.05,
            steps_max: 80,
            step_s_min: 30.0,
            stall_period_s: None,
            seed,
        }
    }

    /// Length of a step at a rate, seconds: enough for the quantile's samples and for several stalls.
    pub fn step_s(&self, rate_per_s: f64) -> f64 {
        let for_samples = SAMPLES_BEHIND_QUANTILE / (1.0 - self.objective.quantile) / rate_per_s;
        let for_stalls = self.stall_period_s.map_or(0.0, |period| period * STALLS_PER_STEP);
        self.step_s_min.max(for_samples).max(for_stalls)
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run the load at this rate.
    Run {
        /// Operations per second.
        rate_per_s: f64,
        /// For this long.
        seconds: f64,
        /// Why, in words.
        why: String,
    },
    /// The search is over.
    Done(Answer),
}
