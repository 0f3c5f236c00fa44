//! The random numbers of memtier_benchmark: `random_r` of the GNU C library with 512 bytes of state, two draws of 31
//! bits each. A comparison of two tools on one server needs the same keys in the same order.

/// The number of words of state.
const DEGREE: usize = 63;
/// The distance of the two numbers that are added.
const SEPARATION: usize = 1;
/// The largest result of [`Random::next`]: 62 bits.
pub(crate) const RANDOM_MAX: u64 = 0x3fff_ffff_ffff_ffff;

/// An additive feedback generator (x^63 + x + 1).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: [u32; DEGREE],
    front: usize,
    rear: usize,
    /// The second number of a polar Gaussian pair.
    spare: Option<f64>,
}

impl Random {
    /// Creates memtier's generator of client seed `seed`. memtier adds 1, because 0 and 1 give the same numbers.
    pub(crate) fn new(seed: u32) -> Self {
        let seed = seed.wrapping_add(1).max(1);
        let mut state = [0; DEGREE];
        let mut word = i64::from(seed.cast_signed());
        for place in &mut state {
            *place = word as u32;
            // The minimal standard generator, by Schrage's method.
            word = 16_807 * (word % 127_773) - 2_836 * (word / 127_773);
            if word < 0 {
                word += 2_147_483_647;
            }
        }
        let mut random = Self { state, front: SEPARATION, rear: 0, spare: None };
        (0..DEGREE * 10).for_each(|_| _ = random.next_31());
        random
    }

    fn next_31(&mut self) -> u32 {
        let sum = self.state[self.front].wrapping_add(self.state[self.rear]);
        self.state[self.front] = sum;
        self.front = if self.front + 1 == DEGREE { 0 } else { self.front + 1 };
        self.rear = if self.rear + 1 == DEGREE { 0 } else { self.rear + 1 };
        sum >> 1
    }

    /// The next 62 bits.
    pub(crate) fn next(&mut self) -> u64 {
        let high = u64::from(self.next_31());
        high << 31 | u64::from(self.next_31())
    }

    /// A number from `min` to `max`.
    pub(crate) fn range(&mut self, min: u64, max: u64) -> u64 {
        self.next() % (max - min + 1) + min
    }

    /// A number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        self.next() as f64 / RANDOM_MAX as f64
    }

    /// A number with a normal distribution around 0 (Marsaglia's polar method).
    pub(crate) fn gaussian(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let u = self.unit() * 2.0 - 1.0;
            let v = self.unit() * 2.0 - 1.0;
            let square = u * u + v * v;
            if square < 1.0 && square != 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(v * scale);
                return u * scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers come from a C program on glibc 2.36: `initstate_r(seed, state, 512, &data)` and `random_r`.
    #[test]
    fn numbers_are_those_of_the_c_library() {
        for (seed, first, last) in [(0, FIRST_1, LAST_1), (1, FIRST_2, LAST_2)] {
            let mut random = Random::new(seed);
            let drawn: Vec<u32> = (0..10_000).map(|_| random.next_31()).collect();
            assert_eq!(drawn[..3], first);
            assert_eq!(drawn[9_999], last);
        }
    }

    #[test]
    fn gaussian_has_mean_zero_and_deviation_one() {
        let mut random = Random::new(7);
        let drawn: Vec<f64> = (0..100_000).map(|_| random.gaussian()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    const FIRST_1: [u32; 3] = [510_644_794, 625_058_908, 1_816_371_419];
    const LAST_1: u32 = 179_943_260;
    const FIRST_2: [u32; 3] = [1_310_390_767, 1_420_222_756, 1_873_455_693];
    const LAST_2: u32 = 1_087_077_743;
}
