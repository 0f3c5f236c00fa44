//! A sample of send times, of bounded size, for the test of random arrivals.

use crate::limits::SENDS_KEPT_MAX;

/// The intended and the actual time of a send, nanoseconds after the start of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The intended time.
    pub intended_ns: u64,
    /// The actual time.
    pub sent_ns: u64,
}

/// A random sample of sends. A random sample of a Poisson process is one again (Kingman, "Poisson Processes", 1993,
/// chapter 5.1). If the sample is full, a random half of it is dropped.
#[derive(Debug, Clone, Default)]
pub struct Sends {
    kept: Vec<Sent>,
    /// The sample keeps one in 2^halvings.
    halvings: u32,
    /// The state of the random numbers.
    state: u64,
}

impl Sends {
    /// Adds a send to the sample, or drops it.
    #[inline]
    pub(super) fn add(&mut self, sent: Sent) {
        if self.throw(self.halvings) {
            self.kept.push(sent);
            if self.kept.len() == SENDS_KEPT_MAX {
                self.thin_to(self.halvings + 1);
            }
        }
    }

    /// Adds the sample of another worker.
    pub(super) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        let halvings = self.halvings.max(other.halvings);
        self.thin_to(halvings);
        other.thin_to(halvings);
        self.kept.append(&mut other.kept);
        while self.kept.len() >= SENDS_KEPT_MAX {
            self.thin_to(self.halvings + 1);
        }
    }

    /// The sample, in the order of sending.
    pub fn in_order(&self) -> Vec<Sent> {
        let mut sends = self.kept.clone();
        sends.sort_unstable_by_key(|sent| sent.sent_ns);
        sends
    }

    fn thin_to(&mut self, halvings: u32) {
        let more = halvings - self.halvings;
        let kept = std::mem::take(&mut self.kept);
        self.kept = kept.into_iter().filter(|_| self.throw(more)).collect();
        self.halvings = halvings;
    }

    /// True once in 2^halvings, at random: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    /// generators", 2014), which costs a nanosecond.
    #[inline]
    fn throw(&mut self, halvings: u32) -> bool {
        if halvings == 0 {
            return true;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) >> (64 - halvings.min(63)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Arrivals, Schedule};
    use crate::statistics::arrivals::{POISSON_MAX, poisson_statistic};

    fn sends(arrivals: Arrivals, seed: u64, count: usize) -> Sends {
        let mut sends = Sends::default();
        for planned in Schedule::new(arrivals, 50, 10_000.0, seed).take(count) {
            sends.add(Sent { intended_ns: planned.at_ns, sent_ns: planned.at_ns + 20_000 });
        }
        sends
    }

    #[test]
    fn what_is_kept_is_bounded_and_still_a_poisson_process() {
        for (count, seed) in [(1_000, 1), (100_000, 2), (1_000_000, 3)] {
            let sends = sends(Arrivals::Poisson, seed, count);
            assert!(sends.kept.len() < SENDS_KEPT_MAX && sends.kept.len() >= SENDS_KEPT_MAX.min(count) / 3);
            assert!(poisson_statistic(&sends.in_order(), 0).unwrap() < POISSON_MAX, "{count}");
        }
        assert!(poisson_statistic(&sends(Arrivals::Fixed, 1, 5_000).in_order(), 0).unwrap() > POISSON_MAX);
    }

    #[test]
    fn merged_samples_of_different_density_are_thinned_alike() {
        let mut all = sends(Arrivals::Poisson, 1, 100_000);
        let few = sends(Arrivals::Poisson, 2, 100_000);
        all.merge(&few);
        let mut other = Sends::default();
        for planned in Schedule::new(Arrivals::Poisson, 50, 200.0, 3).take(2_000) {
            other.add(Sent { intended_ns: planned.at_ns, sent_ns: planned.at_ns });
        }
        other.merge(&all);
        assert!(other.kept.len() < SENDS_KEPT_MAX);
        assert_eq!(other.halvings, all.halvings);
        assert!(poisson_statistic(&other.in_order(), 0).unwrap() < POISSON_MAX);
    }
}
