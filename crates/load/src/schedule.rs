//! The schedule of an open loop: which device sends at which time. It uses neither sockets nor the clock, so a slow
//! server cannot slow it down.

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The distribution of messages over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Every device sends at random, independently of all others (exponential gaps).
    Poisson,
    /// Every device sends at an exact period. The devices are evenly spread, with jitter within their slots.
    Fixed,
}

/// One message to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Intended send time, nanoseconds after the start.
    pub at_ns: u64,
    /// Index of the device, from zero.
    pub device: u32,
}

/// An endless, ordered sequence of planned messages for `devices` devices at a total rate.
#[derive(Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    gap_ns: f64,
    rng: Xoshiro256PlusPlus,
    /// Poisson: the time of the latest message. Fixed: the start of the current slot.
    at_ns: f64,
    /// Fixed: (device, offset within its slot), in sending order.
    slots: Vec<(u32, f64)>,
    slot: usize,
    devices: u32,
    /// Messages come due at multiples of this time.
    timer_ns: u64,
}

impl Schedule {
    /// `rate` messages per second in total for `devices` devices; both above zero.
    pub fn new(arrivals: Arrivals, devices: u32, rate: f64, seed: u64) -> Self {
        assert!(devices > 0 && rate > 0.0, "BUG: options are checked before a schedule is made");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let gap_ns = SECOND_NS as f64 / rate;
        let slots = match arrivals {
            Arrivals::Poisson => Vec::new(),
            Arrivals::Fixed => jittered_slots(devices, gap_ns, &mut rng),
        };
        Self { arrivals, gap_ns, rng, at_ns: 0.0, slots, slot: 0, devices, timer_ns: 1 }
    }

    /// The same messages, each due at the next tick of a timer that all devices share, microseconds; 0 without a timer.
    pub fn on_timer(self, timer_us: u32) -> Self {
        Self { timer_ns: (u64::from(timer_us) * 1_000).max(1), ..self }
    }

    fn tick_after(&self, at_ns: u64) -> u64 {
        at_ns.checked_next_multiple_of(self.timer_ns).unwrap_or(u64::MAX)
    }

    fn next_poisson(&mut self) -> Planned {
        let uniform: f64 = self.rng.random();
        self.at_ns += -(1.0 - uniform).ln() * self.gap_ns;
        Planned { at_ns: self.at_ns as u64, device: self.rng.random_range(0..self.devices) }
    }

    fn next_fixed(&mut self) -> Planned {
        let (device, offset_ns) = self.slots[self.slot];
        let planned = Planned { at_ns: (self.at_ns + offset_ns) as u64, device };
        self.slot = (self.slot + 1) % self.slots.len();
        self.at_ns += self.gap_ns;
        planned
    }
}

impl Iterator for Schedule {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let planned = match self.arrivals {
            Arrivals::Poisson => self.next_poisson(),
            Arrivals::Fixed => self.next_fixed(),
        };
        Some(Planned { at_ns: self.tick_after(planned.at_ns), ..planned })
    }
}

fn jittered_slots(devices: u32, gap_ns: f64, rng: &mut Xoshiro256PlusPlus) -> Vec<(u32, f64)> {
    let mut order: Vec<u32> = (0..devices).collect();
    order.shuffle(rng);
    order.into_iter().map(|device| (device, rng.random::<f64>() * gap_ns)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn take(arrivals: Arrivals, devices: u32, rate: f64, count: usize) -> Vec<Planned> {
        Schedule::new(arrivals, devices, rate, 7).take(count).collect()
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let plan = take(Arrivals::Poisson, 100, 10_000.0, 200_001);
        let gaps: Vec<f64> = plan.windows(2).map(|w| (w[1].at_ns - w[0].at_ns) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 100_000.0 - 1.0).abs() < 0.01, "mean gap {mean} ns, expected 100,000");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "an exponential's deviation equals its mean");
    }

    #[test]
    fn poisson_uses_every_device_about_equally() {
        let mut counts = [0_u32; 50];
        for planned in take(Arrivals::Poisson, 50, 1_000.0, 100_000) {
            counts[planned.device as usize] += 1;
        }
        assert!(counts.iter().all(|c| (1_800..2_200).contains(c)), "{counts:?}");
    }

    #[test]
    fn fixed_gives_every_device_its_exact_period() {
        let plan = take(Arrivals::Fixed, 200, 100.0, 2_000);
        for device in 0..200 {
            let times: Vec<u64> = plan.iter().filter(|p| p.device == device).map(|p| p.at_ns).collect();
            assert_eq!(times.len(), 10);
            assert!(times.windows(2).all(|w| (w[1] - w[0]).abs_diff(2 * SECOND_NS) <= 1), "{times:?}");
        }
    }

    #[test]
    fn both_are_ordered_and_keep_the_total_rate() {
        for arrivals in [Arrivals::Poisson, Arrivals::Fixed] {
            let plan = take(arrivals, 1_000, 30_000.0, 300_000);
            assert!(plan.is_sorted_by_key(|p| p.at_ns), "{arrivals:?}");
            let seconds = plan[plan.len() - 1].at_ns as f64 / SECOND_NS as f64;
            assert!((seconds - 10.0).abs() < 0.1, "{arrivals:?}: 300,000 messages took {seconds} s");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule() {
        assert_eq!(take(Arrivals::Poisson, 10, 10.0, 100), take(Arrivals::Poisson, 10, 10.0, 100));
        let other: Vec<_> = Schedule::new(Arrivals::Poisson, 10, 10.0, 8).take(100).collect();
        assert_ne!(take(Arrivals::Poisson, 10, 10.0, 100), other);
    }

    proptest! {
        #[test]
        fn a_timer_moves_messages_to_its_next_tick_and_nothing_else(
            fixed: bool, devices in 1..500_u32, rate in 0.1..100_000.0, seed: u64, timer_us in 1..100_000_u32,
        ) {
            let arrivals = if fixed { Arrivals::Fixed } else { Arrivals::Poisson };
            let at_any_time = Schedule::new(arrivals, devices, rate, seed);
            let on_ticks = Schedule::new(arrivals, devices, rate, seed).on_timer(timer_us);
            let timer_ns = u64::from(timer_us) * 1_000;
            for (free, tick) in at_any_time.zip(on_ticks).take(500) {
                prop_assert_eq!(free.device, tick.device);
                prop_assert_eq!(tick.at_ns % timer_ns, 0);
                prop_assert!((free.at_ns..free.at_ns + timer_ns).contains(&tick.at_ns), "{:?} {:?}", free, tick);
            }
        }
    }

    #[test]
    fn without_a_timer_nothing_moves_and_the_end_of_time_is_its_last_tick() {
        let plan: Vec<_> = Schedule::new(Arrivals::Poisson, 10, 10.0, 7).on_timer(0).take(100).collect();
        assert_eq!(plan, take(Arrivals::Poisson, 10, 10.0, 100));
        let schedule = Schedule::new(Arrivals::Fixed, 1, 1.0, 1).on_timer(1_000);
        assert_eq!((schedule.tick_after(0), schedule.tick_after(u64::MAX)), (0, u64::MAX));
    }
}
