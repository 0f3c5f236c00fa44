//! Values: bytes of a given compressibility, and the digit groups of sysbench.

use super::random::Random;

/// The length of a period of random and repeated bytes. It is long enough that a compressor's cost of a repetition (2
/// to 4 bytes) hardly counts.
const PERIOD: usize = 256;
/// The compressible bytes.
const FILLER: &[u8; 64] = b"The vehicle reports speed, coolant, load and position; all well.";
const PRINTABLE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The bytes of the incompressible part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Alphabet {
    /// All 256 values.
    Bytes,
    /// 64 letters, digits and signs: 6 bits each, so that this part still compresses to three quarters.
    #[default]
    Printable,
}

impl Alphabet {
    /// The smallest share of its size to which a good compressor can reduce random text of these bytes.
    pub const fn entropy(self) -> f64 {
        match self {
            Self::Bytes => 1.0,
            Self::Printable => 0.75,
        }
    }
}

/// Values with a compressed size of about a given share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    alphabet: Alphabet,
    random_per_period: usize,
}

impl Content {
    /// `compressed_share` is what a good compressor leaves of many such values, 0 to 1 (for printable values up to
    /// 0.75).
    pub fn new(alphabet: Alphabet, compressed_share: f64) -> Self {
        let share = (compressed_share / alphabet.entropy()).clamp(0.0, 1.0);
        Self { alphabet, random_per_period: libm::round(share * PERIOD as f64) as usize }
    }

    /// Fills a value. Values of one stream depend on earlier ones only through `random`. Each value starts a period,
    /// and short values spread their random bytes over their own length.
    pub fn fill(&self, random: &mut Random, value: &mut [u8]) {
        for period in value.chunks_mut(PERIOD) {
            let length = period.len();
            let cut = (self.random_per_period * length).div_ceil(PERIOD).min(length);
            let (noise, rest) = period.split_at_mut(cut);
            match self.alphabet {
                Alphabet::Bytes => random.fill(noise),
                Alphabet::Printable => printable(random, noise),
            }
            for (place, byte) in rest.iter_mut().enumerate() {
                *byte = FILLER[place % FILLER.len()];
            }
        }
    }
}

fn printable(random: &mut Random, bytes: &mut [u8]) {
    for piece in bytes.chunks_mut(10) {
        let mut bits = random.bits();
        for byte in piece {
            *byte = PRINTABLE[(bits & 63) as usize];
            bits >>= 6;
        }
    }
}

/// The digits drawn from one 64-bit number. The bias of a digit is far below 1e-3 of its share of one tenth (10^16 of
/// 2^64).
const DIGITS_PER_DRAW: usize = 16;

/// Appends groups of eleven random digits joined by `-`, the form of sysbench's `c` (10 groups) and `pad` (5 groups).
pub fn digits(random: &mut Random, groups: usize, out: &mut Vec<u8>) {
    let length = groups * 12 - 1;
    let start = out.len();
    out.resize(start + length, b'-');
    let mut left = 0;
    let mut number = 0_u64;
    for (place, byte) in out[start..].iter_mut().enumerate() {
        if place % 12 == 11 {
            continue;
        }
        if left == 0 {
            number = random.below(10_u64.pow(DIGITS_PER_DRAW as u32));
            left = DIGITS_PER_DRAW;
        }
        *byte = b'0' + (number % 10) as u8;
        number /= 10;
        left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_compressed_share_is_what_was_asked_for() {
        for (alphabet, shares) in [
            (Alphabet::Bytes, [0.1, 0.25, 0.5, 0.75, 1.0]),
            (Alphabet::Printable, [0.1, 0.25, 0.5, 0.6, 0.75]),
        ] {
            for share in shares {
                let content = Content::new(alphabet, share);
                let mut random = Random::new(4);
                let mut values = vec![0_u8; 1 << 20];
                values.chunks_mut(1_024).for_each(|value| content.fill(&mut random, value));
                let mut packer =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                packer.write_all(&values).unwrap();
                let packed = packer.finish().unwrap().len() as f64;
                let reached = packed / values.len() as f64;
                assert!((reached - share).abs() < 0.05, "{alphabet:?}: asked {share}, reached {reached}");
            }
        }
    }

    #[test]
    fn short_values_keep_their_share_of_random_bytes() {
        let content = Content::new(Alphabet::Bytes, 0.5);
        let (mut one, mut two) = ([0_u8; 50], [0_u8; 50]);
        let mut random = Random::new(4);
        content.fill(&mut random, &mut one);
        content.fill(&mut random, &mut two);
        assert_ne!(one[..25], two[..25]);
        assert_eq!(one[25..], two[25..]);
    }

    #[test]
    fn digit_groups_have_the_form_of_sysbench() {
        let mut random = Random::new(2);
        let mut out = Vec::new();
        let mut counts = [0_u32; 10];
        for _ in 0..2_000 {
            out.clear();
            digits(&mut random, 10, &mut out);
            assert_eq!(out.len(), 119);
            for (place, byte) in out.iter().enumerate() {
                if place % 12 == 11 {
                    assert_eq!(*byte, b'-');
                } else {
                    counts[usize::from(byte - b'0')] += 1;
                }
            }
        }
        // 220,000 digits.
        assert!(counts.iter().all(|count| (21_300..22_700).contains(count)), "{counts:?}");
        out.clear();
        digits(&mut random, 5, &mut out);
        assert_eq!(out.len(), 59);
    }

    #[test]
    fn the_bytes_of_a_seed_never_change() {
        let mut out = Vec::new();
        digits(&mut Random::keyed(1, 2, 3), 2, &mut out);
        let mut value = [0_u8; 24];
        Content::new(Alphabet::Printable, 0.375).fill(&mut Random::new(1), &mut value);
        let text = format!("{} {}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&value));
        assert_eq!(text, "07628010319-66031231266 3EnoyeqCC3cSThe vehicle ");
    }
}
