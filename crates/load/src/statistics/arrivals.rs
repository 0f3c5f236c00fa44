//! Tests whether the generator sent at random: the Anderson-Darling test of the gaps between sends against an
//! exponential distribution.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::recorder::Sent;

/// The largest statistic of random arrivals. The table of D'Agostino and Stephens ("Goodness-of-fit techniques", 1986,
/// table 4.14: 1.959 at 1 %, 2.534 at 0.25 %, for the statistic times 1 + 0.6 / n) ends below it. Extrapolated in the
/// logarithm, one good run in 100,000 exceeds it; a gate must not fail by chance.
pub const POISSON_MAX: f64 = 5.0;
/// The smallest number of gaps to test.
const GAPS_MIN: usize = 100;
/// The mean gap must be this many times the 99th percentile of the lateness of sends, so that the test does not measure
/// the lateness, which has its own gate.
const GAP_OF_DELAYS: f64 = 20.0;
/// The seed of the thinning, chosen arbitrarily.
const SEED: u64 = 1;

/// The Anderson-Darling statistic against an exponential with the mean of the gaps, times 1 + 0.6 / n. `None` for fewer
/// than eight gaps or none above zero.
pub fn anderson_darling(gaps: &[f64]) -> Option<f64> {
    let mean = super::mean(gaps);
    if gaps.len() < 8 || mean.is_nan() || mean <= 0.0 {
        return None;
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len();
    let sum: f64 = (0..count)
        .map(|i| {
            // A clock cannot tell a gap of zero from one tick; its logarithm would be minus infinity.
            let below = (-(-sorted[i] / mean).exp_m1()).max(1e-12).ln();
            let above = -sorted[count - 1 - i] / mean;
            (2 * i + 1) as f64 * (below + above)
        })
        .sum();
    let statistic = -(count as f64) - sum / count as f64;
    Some(statistic * (1.0 + 0.6 / count as f64))
}

/// The statistic of the gaps between sends, which are given in order. The sends are thinned at random until the gaps
/// are long compared with their lateness. `None` if too few are left. Sends that were due at ticks of a timer
/// (`timer_us`, 0 for none) are first spread over the time before their tick.
pub fn poisson_statistic(sends: &[Sent], timer_us: u32) -> Option<f64> {
    if timer_us > 0 {
        return poisson_statistic(&spread(sends, u64::from(timer_us) * 1_000), 0);
    }
    let (first, last) = (sends.first()?, sends.last()?);
    let mean_gap_ns = (last.sent_ns - first.sent_ns) as f64 / sends.len() as f64;
    let mut delays: Vec<f64> =
        sends.iter().map(|sent| sent.sent_ns.saturating_sub(sent.intended_ns) as f64).collect();
    delays.sort_unstable_by(f64::total_cmp);
    let late_ns = super::sorted_quantile(&delays, 0.99);
    let needed_ns = GAP_OF_DELAYS * late_ns;
    let share = (mean_gap_ns / needed_ns).min(1.0);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let kept: Vec<u64> =
        sends.iter().filter(|_| rng.random::<f64>() < share).map(|sent| sent.sent_ns).collect();
    // Sends of one poll have the same time. Gaps shorter than the lateness are meaningless, and the logarithm of a gap
    // of zero would dominate the statistic.
    let gap = |pair: &[u64]| ((pair[1] - pair[0]) as f64).max(late_ns / 2.0);
    let gaps: Vec<f64> = kept.windows(2).map(gap).collect();
    if gaps.len() < GAPS_MIN { None } else { anderson_darling(&gaps) }
}

/// Moves each send back by a random part of a tick. The number of events of a Poisson process in a tick does not
/// determine their times, which are independent and uniform in it (Kingman, "Poisson Processes", 1993, chapter 2.4). A
/// Poisson process whose events were moved to the next tick becomes one again. Another process does not, over more than
/// a tick.
fn spread(sends: &[Sent], timer_ns: u64) -> Vec<Sent> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED ^ timer_ns);
    let mut spread: Vec<Sent> = sends
        .iter()
        .map(|sent| {
            let back_ns = rng.random_range(0..timer_ns);
            Sent {
                intended_ns: sent.intended_ns.saturating_sub(back_ns),
                sent_ns: sent.sent_ns.saturating_sub(back_ns),
            }
        })
        .collect();
    spread.sort_unstable_by_key(|sent| sent.sent_ns);
    spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Arrivals, Schedule};

    /// Reference: scipy.stats.anderson(values, "expon") gives 0.135077 before the factor.
    #[test]
    fn the_statistic_is_that_of_scipy() {
        let gaps = [0.12, 0.5, 1.3, 0.04, 2.2, 0.9, 0.33, 0.71, 1.9, 0.05, 0.6, 3.1, 0.27, 0.44, 1.05];
        let found = anderson_darling(&gaps).unwrap() / (1.0 + 0.6 / 15.0);
        assert!((found - 0.135_076_993_254).abs() < 1e-9, "{found}");
        assert_eq!(anderson_darling(&[1.0; 3]), None);
    }

    fn sends(arrivals: Arrivals, seed: u64, late: impl Fn(u64) -> u64) -> Vec<Sent> {
        let planned = Schedule::new(arrivals, 50, 1_000.0, seed).take(4_000);
        planned.map(|planned| Sent { intended_ns: planned.at_ns, sent_ns: late(planned.at_ns) }).collect()
    }

    #[test]
    fn the_schedule_passes_and_what_is_not_a_poisson_process_does_not() {
        for seed in 0..40 {
            let found = poisson_statistic(&sends(Arrivals::Poisson, seed, |at| at + 10_000), 0).unwrap();
            assert!(found < POISSON_MAX, "{found} with seed {seed}");
        }
        assert!(poisson_statistic(&sends(Arrivals::Fixed, 1, |at| at + 10_000), 0).unwrap() > POISSON_MAX);
        // The schedule itself consists of bursts, each on time.
        let mut bursts = sends(Arrivals::Poisson, 1, |at| at / 20_000_000 * 20_000_000);
        bursts.iter_mut().for_each(|sent| sent.intended_ns = sent.sent_ns);
        assert!(poisson_statistic(&bursts, 0).unwrap() > POISSON_MAX);
    }

    #[test]
    fn what_was_sent_late_is_looked_at_in_longer_gaps_or_not_at_all() {
        // Polls of 0.5 ms: all sends of a poll have the same time.
        let polls = sends(Arrivals::Poisson, 5, |at| at / 500_000 * 500_000 + 500_000);
        assert!(poisson_statistic(&polls, 0).unwrap() < POISSON_MAX);
        let stalled = sends(Arrivals::Poisson, 5, |at| at / 100_000_000 * 100_000_000 + 100_000_000);
        assert_eq!(poisson_statistic(&stalled, 0), None);
        assert_eq!(poisson_statistic(&[], 0), None);
    }

    /// Like [`sends`], due on ticks of a timer; the sends of a tick follow each other.
    fn on_ticks(arrivals: Arrivals, rate: f64, seed: u64, timer_us: u32) -> Vec<Sent> {
        let planned = Schedule::new(arrivals, 50, rate, seed).on_timer(timer_us).take(4_000);
        let mut last = Sent { intended_ns: 0, sent_ns: 0 };
        let sent = planned.map(|planned| {
            let at_ns = planned.at_ns;
            let sent_ns = if at_ns == last.intended_ns { last.sent_ns + 10_000 } else { at_ns };
            last = Sent { intended_ns: at_ns, sent_ns };
            Sent { intended_ns: at_ns, sent_ns }
        });
        sent.collect()
    }

    #[test]
    fn a_timer_makes_a_plan_no_poisson_process_and_its_ticks_are_allowed_for() {
        for seed in 0..40 {
            let sends = on_ticks(Arrivals::Poisson, 200.0, seed, 1_000);
            let found = poisson_statistic(&sends, 1_000).unwrap();
            assert!(found < POISSON_MAX, "{found} with seed {seed}");
        }
        let wide = on_ticks(Arrivals::Poisson, 200.0, 1, 5_000);
        assert!(poisson_statistic(&wide, 0).unwrap() > POISSON_MAX, "it is taken for one without a timer");
        assert!(poisson_statistic(&wide, 5_000).unwrap() < POISSON_MAX);
        let other = on_ticks(Arrivals::Poisson, 200.0, 1, 50_000);
        assert!(
            poisson_statistic(&other, 5_000).unwrap() > POISSON_MAX,
            "these were the ticks of another timer"
        );
        let fixed = on_ticks(Arrivals::Fixed, 200.0, 1, 1_000);
        assert!(poisson_statistic(&fixed, 1_000).unwrap() > POISSON_MAX);
    }
}
