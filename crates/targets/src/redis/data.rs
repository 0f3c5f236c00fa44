//! Values like those of memtier_benchmark.

use load::dataset::{self, Alphabet};

use super::random::Random;

/// The size of values.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// A constant number of bytes.
    Fixed(u32),
    /// Uniformly distributed between two numbers of bytes.
    Random(u32, u32),
    /// Growing from the first to the second number of bytes with the number of the key.
    Growing(u32, u32),
    /// Sizes with weights, in rotation: each as often as its weight says.
    Weighted(Vec<(u32, u32)>),
}

impl Size {
    pub fn largest(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Random(_, size) | Self::Growing(_, size) => *size,
            Self::Weighted(list) => list.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }
}

/// The content of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Random bytes, as with memtier's `-R`. One byte is incremented per value, so that all bytes are new after as many
    /// values.
    Random,
    /// The letter `x`, memtier's content without `-R`. It compresses to almost nothing.
    MemtierX,
    /// New content for each value, which a good compressor reduces to this many thousandths.
    Compressed(u16),
}

/// The values of one client.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    /// The random content; empty for other kinds.
    buffer: Vec<u8>,
    /// The content of a given compressibility, with its own random numbers.
    compressed: Option<(dataset::Content, dataset::Random)>,
    changed: usize,
    weight_index: usize,
    weight_used: u32,
}

impl Values {
    /// Draws the first content from `random`, as memtier does when it creates a client.
    pub(crate) fn new(size: &Size, content: Content, random: &mut Random) -> Self {
        let bytes = if content == Content::Random { size.largest() as usize } else { 0 };
        let compressed = match content {
            Content::Compressed(thousandths) => {
                let content = dataset::Content::new(Alphabet::Bytes, f64::from(thousandths) / 1e3);
                Some((content, dataset::Random::new(random.next())))
            }
            Content::Random | Content::MemtierX => None,
        };
        let mut values =
            Self { buffer: vec![0; bytes], compressed, changed: 0, weight_index: 0, weight_used: 0 };
        values.fill(random);
        values
    }

    fn fill(&mut self, random: &mut Random) {
        self.buffer.iter_mut().for_each(|byte| *byte = random.next() as u8);
    }

    /// The size of the next value. `share` is the position of the key within its range, from 0 to 1.
    pub(crate) fn next_size(&mut self, size: &Size, share: f64, random: &mut Random) -> usize {
        (match size {
            Size::Fixed(size) => *size,
            Size::Random(min, max) => random.range(u64::from((*min).max(1)), u64::from(*max)) as u32,
            Size::Growing(min, max) => (f64::from(max - min) * share + f64::from(*min)) as u32,
            Size::Weighted(list) => self.next_weighted(list),
        }) as usize
    }

    fn next_weighted(&mut self, list: &[(u32, u32)]) -> u32 {
        while self.weight_used >= list[self.weight_index].1 {
            self.weight_index = (self.weight_index + 1) % list.len();
            self.weight_used = 0;
        }
        self.weight_used += 1;
        list[self.weight_index].0
    }

    /// Appends the next value.
    pub(crate) fn append(&mut self, out: &mut Vec<u8>, bytes: usize, random: &mut Random) {
        if let Some((content, random)) = &mut self.compressed {
            let begin = out.len();
            out.resize(begin + bytes, 0);
            return content.fill(random, &mut out[begin..]);
        }
        if self.buffer.is_empty() {
            out.resize(out.len() + bytes, b'x');
            return;
        }
        self.buffer[self.changed] = self.buffer[self.changed].wrapping_add(1);
        self.changed += 1;
        if self.changed == self.buffer.len() {
            self.changed = 0;
            self.fill(random);
        }
        out.extend_from_slice(&self.buffer[..bytes]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_values_change_by_one_byte_and_then_all() {
        let mut random = Random::new(0);
        let size = Size::Fixed(8);
        let mut values = Values::new(&size, Content::Random, &mut random);
        let mut next = || {
            let mut out = Vec::new();
            values.append(&mut out, 8, &mut random);
            out
        };
        let all: Vec<Vec<u8>> = (0..8).map(|_| next()).collect();
        for pair in all[..7].windows(2) {
            assert_eq!(pair[0].iter().zip(&pair[1]).filter(|(a, b)| a != b).count(), 1, "{pair:?}");
        }
        assert!(all[6].iter().zip(&all[7]).filter(|(a, b)| a != b).count() > 4, "new bytes after 8 values");
    }

    #[test]
    fn values_compress_to_what_was_asked_and_none_is_like_another() {
        for thousandths in [0, 250, 900] {
            let (mut random, size) = (Random::new(0), Size::Fixed(1_250));
            let mut values = Values::new(&size, Content::Compressed(thousandths), &mut random);
            let mut all = Vec::new();
            (0..400).for_each(|_| values.append(&mut all, 1_250, &mut random));
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut encoder, &all).unwrap();
            let share = encoder.finish().unwrap().len() as f64 / all.len() as f64;
            assert!((share - f64::from(thousandths) / 1e3).abs() < 0.05, "{thousandths}: {share}");
            assert_eq!(all[..1_250] == all[1_250..2_500], thousandths == 0);
        }
    }

    #[test]
    fn sizes_are_as_asked() {
        let mut random = Random::new(0);
        let sizes = |size: &Size, random: &mut Random| -> Vec<usize> {
            let mut values = Values::new(size, Content::MemtierX, random);
            (0..6).map(|n| values.next_size(size, f64::from(n) / 5.0, random)).collect()
        };
        assert_eq!(sizes(&Size::Fixed(32), &mut random), [32; 6]);
        assert_eq!(sizes(&Size::Growing(10, 20), &mut random), [10, 12, 14, 16, 18, 20]);
        assert_eq!(sizes(&Size::Weighted(vec![(5, 2), (9, 1)]), &mut random), [5, 5, 9, 5, 5, 9]);
        assert!(sizes(&Size::Random(0, 3), &mut random).iter().all(|size| (1..=3).contains(size)));
    }
}
