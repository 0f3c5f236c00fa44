//! Compares a result with an objective.

use super::{Objective, Outcome};
use crate::result::{ALL, Bundle, Clock, Phase};

/// Samples needed for a quantile q: 100 / (1 - q).
pub const SAMPLES_BEHIND_QUANTILE: f64 = 100.0;

impl Outcome {
    /// The outcome of a phase with a planned rate.
    pub fn measured(bundle: &Bundle, phase: &Phase, rate_per_s: f64, objective: &Objective) -> Self {
        let counts = &phase.total.counts;
        let of_sent = |part: u64| part as f64 / counts.sent.max(1) as f64;
        let of_planned = |part: u64| part as f64 / counts.planned.max(1) as f64;
        let response = bundle.histograms.get(&phase.name, ALL, Clock::Response);
        let answered = response.filter(|timeline| !timeline.total.is_empty());
        let at = |quantile| answered.map(|timeline| timeline.total.quantile_us(quantile) as f64);
        Self {
            rate_per_s,
            // Poisson arrivals differ from the planned number, so the share refers to the operations that came due.
            achieved_per_s: rate_per_s * of_planned(counts.completed),
            quantile_us: response
                .map_or(f64::INFINITY, |timeline| timeline.total.quantile_us(objective.quantile) as f64),
            p50_us: at(0.5),
            p99_us: at(0.99),
            error_share: of_sent(counts.errors_total()),
            backlog_growth: of_planned(counts.planned.saturating_sub(counts.completed_in_time)),
            generator_fault: None,
        }
    }
}

impl Objective {
    /// A sentence for each measured phase with operations: whether it met the objective.
    pub fn sentences(&self, bundle: &Bundle) -> Vec<String> {
        let asked = bundle.measured().filter(|phase| phase.total.counts.planned > 0);
        asked.map(|phase| self.sentence(bundle, phase)).collect()
    }

    fn sentence(&self, bundle: &Bundle, phase: &Phase) -> String {
        let name = &phase.name;
        if !bundle.result.validity().is_quotable() {
            return format!(
                "{name}: whether the objective {self} is met is not said, because the run is not valid."
            );
        }
        if phase.total.counts.completed == 0 {
            return format!("{name}: the objective {self} is NOT met: nothing was answered.");
        }
        let rate_per_s = phase.total.counts.planned as f64 / phase.duration_s.max(1e-9);
        let mut outcome = Outcome::measured(bundle, phase, rate_per_s, self);
        // Operations in flight at the end of a short run or a closed loop are not a backlog.
        outcome.backlog_growth = 0.0;
        let failures = self.failures(&outcome);
        let few = phase.total.response.as_ref().is_some_and(|response| {
            (response.samples as f64) < SAMPLES_BEHIND_QUANTILE / (1.0 - self.quantile)
        });
        let few = if few { ", by too few answers to be sure" } else { "" };
        if failures.is_empty() {
            format!("{name}: the objective {self} is met ({:.3} ms{few}).", outcome.quantile_us / 1e3)
        } else {
            format!("{name}: the objective {self} is NOT met: {}{few}.", failures.join(", "))
        }
    }
}
