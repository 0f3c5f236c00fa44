//! The state of a search, and the choice of the next rate.

use load::statistics::logistic::{Curve, Trial};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use load::objective::Outcome;

use super::{Answer, Plan, Step};

/// The rates around the edge, in steps of the resolution.
const EDGE: [f64; 5] = [-2.0, -1.0, 0.0, 1.0, 2.0];
/// The number of trials of a rate after which the majority decides.
const TRIALS_PER_RATE_MAX: usize = 3;
/// The number of consecutive steps with a slow generator after which the search ends.
const FAULTS_MAX: usize = 3;
/// The number of rates below the first one after which the search gives up: 1.5 to this power is more than 3,000.
const RATES_DOWN_MAX: usize = 20;
const CONFIDENCE: f64 = 0.95;
const RESAMPLES: usize = 1_000;

/// The next step after the steps of `history`, in their order.
pub fn next(plan: &Plan, history: &[Outcome]) -> Step {
    let mut search = Search::new(plan);
    for outcome in history {
        search.observe(outcome);
    }
    search.step()
}

#[derive(Debug)]
struct Search<'a> {
    plan: &'a Plan,
    trials: Vec<Trial>,
    /// The reason of the latest failure.
    last_failure: String,
    /// The rate that is being tried.
    rate: f64,
    /// The number of its trials that passed, and that failed.
    votes: (usize, usize),
    /// The highest rate that passed below `fails`.
    passes: Option<f64>,
    /// The lowest rate that failed.
    fails: Option<f64>,
    /// The remaining rates around the edge; `None` before the edge is known.
    edge: Option<Vec<f64>>,
    rng: Xoshiro256PlusPlus,
    rates_down: usize,
    /// The number of consecutive steps at this rate for which the generator was too slow.
    faults: usize,
    answer: Option<Answer>,
}

impl<'a> Search<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            trials: Vec::new(),
            last_failure: String::new(),
            rate: plan.start_per_s.min(plan.rate_per_s_max),
            votes: (0, 0),
            passes: None,
            fails: None,
            edge: None,
            rng: Xoshiro256PlusPlus::seed_from_u64(plan.seed),
            rates_down: 0,
            faults: 0,
            answer: None,
        }
    }

    fn step(self) -> Step {
        if let Some(answer) = self.answer {
            return Step::Done(answer);
        }
        let why = match (&self.edge, self.passes, self.fails) {
            _ if self.faults > 0 => "once more, because the generator was the limit".to_owned(),
            (Some(left), ..) => format!("repeats around the edge, {} to go", left.len()),
            (None, Some(passes), Some(fails)) => {
                format!("between {passes:.0}/s, which passes, and {fails:.0}/s, which fails")
            }
            _ if self.votes != (0, 0) => "once more, because a single failure may be an accident".to_owned(),
            (None, None, Some(_)) => "lower, for a rate that passes".to_owned(),
            _ => "higher, for a rate that fails".to_owned(),
        };
        Step::Run { rate_per_s: self.rate, seconds: self.plan.step_s(self.rate), why }
    }

    fn observe(&mut self, outcome: &Outcome) {
        if self.answer.is_some() {
            return;
        }
        if let Some(fault) = &outcome.generator_fault {
            self.generator_failed(outcome.rate_per_s, fault);
            return;
        }
        self.faults = 0;
        let failures = self.plan.objective.failures(outcome);
        let passed = failures.is_empty();
        if !passed {
            self.last_failure = failures.join(", ");
        }
        self.trials.push(Trial { rate_per_s: outcome.rate_per_s, passed });
        if self.edge.is_some() {
            self.next_edge();
        } else {
            self.vote(passed);
        }
        if self.answer.is_none() && self.trials.len() >= self.plan.steps_max {
            self.conclude(true);
        }
    }

    /// Records a trial. A pass counts at once. A failure must be confirmed, because one accident would halve the
    /// answer.
    fn vote(&mut self, passed: bool) {
        if passed {
            self.votes.0 += 1;
        } else {
            self.votes.1 += 1;
        }
        let (passes, fails) = self.votes;
        let decided = if fails == 0 || passes > fails {
            Some(true)
        } else if fails > passes && (fails >= 2 || self.passes.is_some() && self.fails.is_some()) {
            Some(false)
        } else if passes + fails >= TRIALS_PER_RATE_MAX {
            Some(passes > fails)
        } else {
            None
        };
        if let Some(passed) = decided {
            self.votes = (0, 0);
            if passed {
                self.passes = Some(self.rate)
            } else {
                self.fails = Some(self.rate)
            }
            self.next_rate();
        }
    }

    fn next_rate(&mut self) {
        match (self.passes, self.fails) {
            (Some(passes), Some(fails)) if fails / passes <= 1.0 + self.plan.resolution => {
                self.plan_edge((passes * fails).sqrt());
            }
            (Some(passes), Some(fails)) => self.rate = (passes * fails).sqrt(),
            (Some(passes), None) if passes >= self.plan.rate_per_s_max => {
                let because = "it is the largest rate that was to be tried".to_owned();
                self.answer = Some(Answer::AtLeast { rate_per_s: passes, because });
            }
            (Some(passes), None) => self.rate = (passes * self.plan.ramp).min(self.plan.rate_per_s_max),
            (None, Some(fails)) if self.rates_down >= RATES_DOWN_MAX || fails < 1.0 => {
                self.answer = Some(Answer::Below { rate_per_s: fails, because: self.last_failure.clone() });
            }
            (None, Some(fails)) => {
                self.rates_down += 1;
                self.rate = fails / self.plan.ramp;
            }
            (None, None) => {}
        }
    }

    /// Plans each rate around the edge several times, in random order, so that neither a warm cache nor the aftermath
    /// of an overload favours one of them.
    fn plan_edge(&mut self, centre: f64) {
        // The rates are shifted a little, so that a second round tries other rates than the first.
        let shift = self.rng.random::<f64>() - 0.5;
        let mut rates: Vec<f64> = EDGE
            .iter()
            .flat_map(|step| std::iter::repeat_n((step + shift) * self.plan.resolution, self.plan.repeats))
            .map(|log| (centre * log.exp()).min(self.plan.rate_per_s_max))
            .collect();
        rates.shuffle(&mut self.rng);
        self.rate = rates.pop().unwrap_or(centre);
        self.edge = Some(rates);
    }

    fn next_edge(&mut self) {
        match self.edge.as_mut().and_then(Vec::pop) {
            Some(rate) => self.rate = rate,
            None => self.conclude(false),
        }
    }

    /// Fits the curve. If its interval is too wide and steps are left, plans another round around its middle.
    fn conclude(&mut self, out_of_steps: bool) {
        let Some(curve) = Curve::fit(&self.trials) else {
            self.conclude_without_curve(out_of_steps);
            return;
        };
        let interval = curve.interval(&self.trials, 0.5, CONFIDENCE, RESAMPLES, self.plan.seed);
        let rate_per_s = curve.rate_at(0.5);
        let precise = interval.high / interval.low <= (1.0 + self.plan.precision).powi(2);
        let round = EDGE.len() * self.plan.repeats;
        if !precise && !out_of_steps && self.trials.len() + round <= self.plan.steps_max {
            self.plan_edge(rate_per_s);
            return;
        }
        let trials = self.trials.len();
        let safe_per_s = curve.rate_at(0.9);
        self.answer = Some(Answer::Found { rate_per_s, interval, safe_per_s, trials, precise });
    }

    fn conclude_without_curve(&mut self, out_of_steps: bool) {
        let because = if out_of_steps {
            format!("the {} steps are used up", self.plan.steps_max)
        } else {
            "passing does not become rarer with the rate".to_owned()
        };
        self.answer = Some(match (self.passes, self.fails) {
            (Some(rate_per_s), _) => Answer::AtLeast { rate_per_s, because },
            (None, fails) => Answer::Below { rate_per_s: fails.unwrap_or(self.rate), because },
        });
    }

    /// Handles a step with a slow generator. It says nothing about the target, so the highest rate that passed is a
    /// lower bound. On a busy machine it may be an accident, so the step is repeated first.
    fn generator_failed(&mut self, rate_per_s: f64, fault: &str) {
        self.faults += 1;
        if self.faults < FAULTS_MAX {
            return;
        }
        let because = format!("the generator itself was the limit at {rate_per_s:.0}/s: {fault}");
        self.answer = Some(match self.passes {
            Some(rate_per_s) => Answer::AtLeast { rate_per_s, because },
            None => Answer::AtLeast { rate_per_s: 0.0, because },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with one queue: exponential service at `service_per_s`, with noise from step to step.
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

        /// The rate at which p99 reaches the limit.
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
