//! The plan of a search for a capacity, and its next step.

use load::objective::{Objective, SAMPLES_BEHIND_QUANTILE};

use super::Answer;

/// A step lasts at least this many periods of regular stalls, so that each step contains some.
const STALLS_PER_STEP: f64 = 3.0;

/// The parameters of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub objective: Objective,
    /// The first rate, operations per second.
    pub start_per_s: f64,
    /// The largest rate to try.
    pub rate_per_s_max: f64,
    /// The factor of the ramp.
    pub ramp: f64,
    /// The distance of pass and fail at which bisection ends, as a share.
    pub resolution: f64,
    /// The number of trials at each rate around the edge.
    pub repeats: usize,
    /// The largest half width of the interval with which the search ends, as a share.
    pub precision: f64,
    /// The largest number of steps.
    pub steps_max: usize,
    /// The shortest step, seconds.
    pub step_s_min: f64,
    /// The period of regular stalls, seconds, if any are known.
    pub stall_period_s: Option<f64>,
    /// The seed of the order of repeats and of the interval.
    pub seed: u64,
}

impl Plan {
    /// The default plan from a first rate.
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

    /// The length of a step, seconds: long enough for the quantile's samples and for several stalls.
    pub fn step_s(&self, rate_per_s: f64) -> f64 {
        let for_samples = SAMPLES_BEHIND_QUANTILE / (1.0 - self.objective.quantile) / rate_per_s;
        let for_stalls = self.stall_period_s.map_or(0.0, |period| period * STALLS_PER_STEP);
        self.step_s_min.max(for_samples).max(for_stalls)
    }
}

/// The next step of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run the load at a rate.
    Run {
        /// Operations per second.
        rate_per_s: f64,
        /// The length of the step.
        seconds: f64,
        /// The reason, as text.
        why: String,
    },
    /// The search is over.
    Done(Answer),
}
