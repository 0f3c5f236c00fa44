//! Finds the rate up to which a target meets its objective. Pure: `next` looks at what was run and says what to run
//! next; a runner carries it out.
//!
//! A geometric ramp finds a rate that passes and one that fails, bisection of the logarithm narrows them to 3 %, then
//! rates around the edge are repeated in random order and a logistic curve is fitted to all trials. The answer is the
//! rate at which half of the trials pass, with its interval, and the safe rate at which nine of ten do.

mod measured;
mod objective;
mod search;

use serde::{Deserialize, Serialize};

pub use objective::{Objective, ParseError};
use search::Search;

use crate::statistics::Interval;

/// Samples behind a quantile q that make it worth judging: 100 / (1 - q).
const SAMPLES_BEHIND_QUANTILE: f64 = 100.0;
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

/// What one step brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Rate asked for, operations per second, as `Step::Run` said it.
    pub rate_per_s: f64,
    /// Operations completed per second.
    pub achieved_per_s: f64,
    /// Response time at the objective's quantile, microseconds.
    pub quantile_us: f64,
    /// Median of the response time, microseconds; `None` where nothing was answered.
    #[serde(default)]
    pub p50_us: Option<f64>,
    /// Its 99th percentile.
    #[serde(default)]
    pub p99_us: Option<f64>,
    /// Failures as a share of what was sent.
    pub error_share: f64,
    /// Growth of the number of operations begun and not answered, per second, as a share of the rate.
    pub backlog_growth: f64,
    /// Why the step says nothing about the target: the generator itself was too slow. `None` for a valid step.
    pub generator_fault: Option<String>,
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

/// What to do after the steps of `history`, in their order.
pub fn next(plan: &Plan, history: &[Outcome]) -> Step {
    let mut search = Search::new(plan);
    for outcome in history {
        search.observe(outcome);
    }
    search.step()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    /// A server with one queue: exponential service at `service_per_s`, p99 with noise from step to step.
    struct Server {
        service_per_s: f64,
        noise: f64,
        rng: Xoshiro256PlusPlus,
    }

    impl Server {
        fn run(&mut self, rate_per_s: f64) -> Outcome {
            let normal: f64 = (0..12).map(|_| self.rng.random::<f64>()).sum::<f64>() - 6.0;
            let service = self.service_per_s * (self.noise * normal).exp();
            let spare = service - rate_per_s;
            Outcome {
                rate_per_s,
                achieved_per_s: rate_per_s.min(service),
                quantile_us: if spare > 0.0 { 100_f64.ln() / spare * 1e6 } else { 1e9 },
                p50_us: None,
                p99_us: None,
                error_share: 0.0,
                backlog_growth: (-spare / rate_per_s).max(0.0),
                generator_fault: None,
            }
        }

        /// The rate at which p99 is the limit.
        fn capacity(&self, limit_us: f64) -> f64 {
            self.service_per_s - 100_f64.ln() / limit_us * 1e6
        }
    }

    fn search(plan: &Plan, server: &mut Server) -> (Answer, Vec<Outcome>) {
        let mut history = Vec::new();
        for _ in 0..=plan.steps_max {
            match next(plan, &history) {
                Step::Run { rate_per_s, seconds, .. } => {
                    assert!(seconds >= plan.step_s_min && rate_per_s <= plan.rate_per_s_max);
                    history.push(server.run(rate_per_s));
                }
                Step::Done(answer) => return (answer, history),
            }
        }
        panic!("the search does not end within its steps")
    }

    fn plan(start_per_s: f64, seed: u64) -> Plan {
        Plan::new("p99<=20ms".parse().unwrap(), start_per_s, seed)
    }

    #[test]
    fn the_capacity_of_a_known_server_lies_in_the_interval() {
        let (mut covered, mut steps) = (0, 0);
        for seed in 0..40 {
            let mut server =
                Server { service_per_s: 12_000.0, noise: 0.02, rng: Xoshiro256PlusPlus::seed_from_u64(seed) };
            let (answer, history) = search(&plan(500.0, seed), &mut server);
            let Answer::Found { rate_per_s, interval, safe_per_s, .. } = answer else { panic!("{answer:?}") };
            let truth = server.capacity(20_000.0);
            assert!((rate_per_s / truth - 1.0).abs() < 0.05, "{rate_per_s} for {truth}");
            assert!(safe_per_s < rate_per_s && safe_per_s > 0.85 * truth, "{safe_per_s}");
            covered += usize::from(interval.contains(truth));
            steps += history.len();
        }
        assert!(covered >= 37, "{covered} of 40 intervals hold the truth");
        assert!(steps / 40 <= 40, "{} steps a search", steps / 40);
    }

    #[test]
    fn a_start_above_the_capacity_ramps_down() {
        let mut server =
            Server { service_per_s: 3_000.0, noise: 0.01, rng: Xoshiro256PlusPlus::seed_from_u64(9) };
        let (answer, _) = search(&plan(50_000.0, 9), &mut server);
        let Answer::Found { rate_per_s, .. } = answer else { panic!("{answer:?}") };
        assert!((rate_per_s / server.capacity(20_000.0) - 1.0).abs() < 0.05, "{rate_per_s}");
    }

    #[test]
    fn a_generator_at_its_limit_gives_a_lower_bound_and_not_a_capacity() {
        let mut history = Vec::new();
        let plan = plan(1_000.0, 1);
        let answer = loop {
            match next(&plan, &history) {
                Step::Run { rate_per_s, .. } => history.push(Outcome {
                    rate_per_s,
                    achieved_per_s: rate_per_s,
                    quantile_us: 500.0,
                    p50_us: None,
                    p99_us: None,
                    error_share: 0.0,
                    backlog_growth: 0.0,
                    generator_fault: (rate_per_s > 20_000.0).then(|| "lag p99 is 9 ms".to_owned()),
                }),
                Step::Done(answer) => break answer,
            }
        };
        let Answer::AtLeast { rate_per_s, because } = &answer else { panic!("{answer:?}") };
        assert!(
            (10_000.0..=20_000.0).contains(rate_per_s) && because.contains("lag p99 is 9 ms"),
            "{answer}"
        );
    }

    #[test]
    fn a_server_that_never_passes_is_said_so() {
        let mut server =
            Server { service_per_s: 10.0, noise: 0.01, rng: Xoshiro256PlusPlus::seed_from_u64(2) };
        let (answer, _) = search(&plan(1_000.0, 2), &mut server);
        assert!(matches!(answer, Answer::Below { .. }), "{answer:?}");
        assert!(answer.to_string().contains("no rate meets the objective"), "{answer}");
    }

    #[test]
    fn the_same_history_gives_the_same_step() {
        let mut server =
            Server { service_per_s: 5_000.0, noise: 0.02, rng: Xoshiro256PlusPlus::seed_from_u64(4) };
        let plan = plan(500.0, 4);
        let (_, history) = search(&plan, &mut server);
        for length in 0..=history.len() {
            assert_eq!(next(&plan, &history[..length]), next(&plan, &history[..length]));
        }
    }

    #[test]
    fn steps_are_long_enough_for_the_quantile_and_the_stalls() {
        let mut plan = Plan::new("p99.9<=20ms".parse().unwrap(), 100.0, 1);
        assert!((plan.step_s(100.0) - 1_000.0).abs() < 1e-6, "100,000 samples at 100/s");
        assert_eq!(plan.step_s(1e6), 30.0);
        plan.stall_period_s = Some(60.0);
        assert_eq!(plan.step_s(1e6), 180.0);
    }
}
