//! The random numbers of one vehicle, from its seed, so that a fleet can be repeated.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Keeps neighbouring vehicles' seeds apart: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A vehicle's source of randomness.
#[derive(Debug, Clone)]
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(super) fn of_vehicle(seed: u64, index: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(index.wrapping_mul(SPREAD))))
    }

    /// A uniform number between the two.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }

    /// One of the choices.
    pub(super) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.0.random_range(0..choices.len())]
    }

    /// 1 or -1.
    pub(super) fn sign(&mut self) -> f64 {
        if self.chance(0.5) { 1.0 } else { -1.0 }
    }
}

/// A slow random walk around zero with the correlation time `memory_s` (an Ornstein-Uhlenbeck process).
#[derive(Debug, Clone, Default)]
pub(super) struct Wander {
    value: f64,
}

impl Wander {
    /// The value after `dt_s` more seconds; its standard deviation settles at `spread`.
    pub(super) fn step(&mut self, random: &mut Random, dt_s: f64, memory_s: f64, spread: f64) -> f64 {
        let keep = (-dt_s / memory_s).exp();
        // A uniform number from -1 to 1 has the variance 1/3.
        let kick = random.between(-1.0, 1.0) * 3.0_f64.sqrt();
        self.value = self.value * keep + kick * spread * (1.0 - keep * keep).sqrt();
        self.value
    }
}
