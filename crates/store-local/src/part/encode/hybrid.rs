//! The Parquet hybrid of run lengths and bit packing, for definition levels and dictionary indices.

use crate::codec::put_varint;

/// Writes numbers of a fixed width, run by run.
pub(crate) struct HybridWriter<'a> {
    out: &'a mut Vec<u8>,
    width: u32,
    /// Numbers that are not in a run of eight. They are written in groups of eight.
    literals: Vec<u32>,
}

impl<'a> HybridWriter<'a> {
    /// Starts to append to `out`. No number may have more than `width` bits.
    pub(crate) fn new(out: &'a mut Vec<u8>, width: u32) -> Self {
        Self { out, width, literals: Vec::new() }
    }

    /// Writes `number`, `count` times.
    pub(crate) fn run(&mut self, number: u32, mut count: usize) {
        let open = self.literals.len() % 8;
        if open != 0 {
            let fill = count.min(8 - open);
            self.literals.extend(std::iter::repeat_n(number, fill));
            count -= fill;
        }
        if count < 8 {
            self.literals.extend(std::iter::repeat_n(number, count));
            return;
        }
        self.flush();
        put_varint(self.out, (count as u64) << 1);
        let bytes = self.width.div_ceil(8) as usize;
        self.out.extend_from_slice(&number.to_le_bytes()[..bytes]);
    }

    /// Ends the numbers. Fills the last group of eight with zeros, which readers ignore.
    pub(crate) fn finish(mut self) {
        self.flush();
    }

    fn flush(&mut self) {
        if self.literals.is_empty() {
            return;
        }
        self.literals.resize(self.literals.len().next_multiple_of(8), 0);
        put_varint(self.out, (self.literals.len() as u64 / 8) << 1 | 1);
        let (mut bits, mut held) = (0_u64, 0);
        for number in self.literals.drain(..) {
            bits |= u64::from(number) << held;
            held += self.width;
            while held >= 8 {
                self.out.push(bits as u8);
                bits >>= 8;
                held -= 8;
            }
        }
    }
}

/// The number of bits that the largest number needs.
pub(crate) fn width_of(largest: u64) -> u32 {
    u64::BITS - largest.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_literals_have_the_bytes_of_the_specification() {
        let mut out = Vec::new();
        let mut writer = HybridWriter::new(&mut out, 3);
        (0..8).for_each(|number| writer.run(number, 1));
        writer.run(4, 100);
        writer.run(1, 2);
        writer.finish();
        // The example of the Parquet specification for 0 to 7, a run of 100 fours, two ones and six zeros to fill.
        assert_eq!(out, [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010, 200, 1, 4, 0b11, 0b0000_1001, 0, 0]);
    }

    #[test]
    fn a_run_first_fills_what_is_open() {
        let mut out = Vec::new();
        let mut writer = HybridWriter::new(&mut out, 1);
        writer.run(0, 3);
        writer.run(1, 20);
        writer.finish();
        assert_eq!(out, [0b11, 0b1111_1000, 15 << 1, 1]);
    }
}
