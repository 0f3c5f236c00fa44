//! Numbers that never repeat and look random: a walk over a permutation of all 32-bit numbers.

/// The largest prime below 2^32 that is 3 modulo 4: squaring modulo it, mirrored in the upper half, is a permutation.
const PRIME: u64 = 4_294_967_291;

/// A permutation of all 32-bit numbers, by quadratic residues (Preshing). sysbench's row ids without AUTO_INCREMENT
/// come from such a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unique {
    start: u32,
    offset: u32,
}

impl Unique {
    /// The permutation of a seed.
    pub fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        Self {
            start: permute(permute(low).wrapping_add(0x682f_0161)),
            offset: permute(permute(high).wrapping_add(0x4679_0905)),
        }
    }

    /// The number at a place of the walk; different places have different numbers.
    pub fn at(self, place: u32) -> u32 {
        let index = self.start.wrapping_add(place);
        permute(permute(index).wrapping_add(self.offset) ^ 0x5bf0_3635)
    }
}

fn permute(number: u32) -> u32 {
    let wide = u64::from(number);
    if wide >= PRIME {
        return number;
    }
    let residue = wide * wide % PRIME;
    if wide <= PRIME / 2 { residue as u32 } else { (PRIME - residue) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_repeat() {
        let unique = Unique::new(77);
        let mut numbers: Vec<u32> = (0..1_000_000).map(|place| unique.at(place)).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|w| w[0] != w[1]));
        assert!(numbers[500_000].abs_diff(u32::MAX / 2) < u32::MAX / 100, "they spread over the whole range");
        assert_ne!(unique.at(0), Unique::new(78).at(0));
    }
}
