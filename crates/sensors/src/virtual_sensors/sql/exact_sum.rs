//! Sums of numbers without rounding, so that a value which leaves a window leaves nothing behind.

/// Bits of one limb.
const LIMB: u32 = 32;
/// Limbs for all bits of a finite `f64` (2098), and room above them for carries.
const LIMBS: usize = 68;
/// The weight of the lowest bit is 2 to the power of this.
const LOWEST: i32 = -1074;
/// Additions after which carries are moved: each changes a limb by less than 2³².
const CARRY_EVERY: u32 = 1 << 30;

/// A sum of finite numbers as one wide fixed-point number.
#[derive(Debug, Clone)]
pub(crate) struct ExactSum {
    limbs: [i64; LIMBS],
    since_carry: u32,
}

impl ExactSum {
    pub(crate) fn new() -> Self {
        Self { limbs: [0; LIMBS], since_carry: 0 }
    }

    /// Adds a number; to take it out again, add its negative.
    pub(crate) fn add(&mut self, number: f64) {
        debug_assert!(number.is_finite());
        let bits = number.to_bits();
        let exponent = (bits >> 52) & 0x7ff;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, shift) =
            if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent as u32 - 1) };
        let mut wide = u128::from(mantissa) << (shift % LIMB);
        let first = (shift / LIMB) as usize;
        for limb in &mut self.limbs[first..first + 3] {
            let piece = (wide & 0xffff_ffff) as i64;
            *limb += if number.is_sign_negative() { -piece } else { piece };
            wide >>= LIMB;
        }
        self.since_carry += 1;
        if self.since_carry == CARRY_EVERY {
            self.carry();
        }
    }

    /// The sum, rounded once. It is infinite if it is too large.
    pub(crate) fn value(&self) -> f64 {
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.limbs[LIMBS - 1] < 0;
        if negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.carry();
        }
        let Some(highest) = sum.limbs.iter().rposition(|limb| *limb != 0) else { return 0.0 };
        let base = highest.saturating_sub(2);
        let mut top = 0_u128;
        for limb in sum.limbs[base..=highest].iter().rev() {
            top = top << LIMB | *limb as u128;
        }
        // Lower bits only decide whether a half is more than a half; three limbs have many more bits than a mantissa.
        if sum.limbs[..base].iter().any(|limb| *limb != 0) {
            top |= 1;
        }
        let magnitude = scale(top as f64, base as i32 * LIMB as i32 + LOWEST);
        if negative { -magnitude } else { magnitude }
    }

    /// The sum as two numbers, the second of which is what rounding the first leaves.
    pub(crate) fn parts(&self) -> (f64, f64) {
        let high = self.value();
        if !high.is_finite() {
            return (high, 0.0);
        }
        let mut rest = self.clone();
        rest.add(-high);
        (high, rest.value())
    }

    /// Moves what a limb has too much to the next, so that all but the last are from 0 to 2³² - 1.
    fn carry(&mut self) {
        for at in 0..LIMBS - 1 {
            let over = self.limbs[at] >> LIMB;
            self.limbs[at] -= over << LIMB;
            self.limbs[at + 1] += over;
        }
        self.since_carry = 0;
    }
}

/// `number · 2^power`; the number is whole, so halving the power never loses bits of a small result.
fn scale(number: f64, power: i32) -> f64 {
    let half = power / 2;
    number * power_of_two(half) * power_of_two(power - half)
}

fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}
