//! Memory bandwidth and latency over a buffer larger than the caches.

use std::hint::black_box;

use load::dataset::Random;

/// The buffer of each thread.
pub(super) const BUFFER_BYTES: usize = 64 * 1024 * 1024;
/// The dependent reads of one operation.
pub(super) const CHASES: u32 = 10_000;
/// The words of a cache line.
const LINE_WORDS: usize = 8;

/// The buffer, and a random cycle through all its cache lines.
#[derive(Debug)]
pub(super) struct Memory {
    words: Vec<u64>,
    pattern: u64,
    at: usize,
    chain: Vec<u64>,
}

impl Memory {
    pub(super) fn new(number: u32) -> Self {
        let words = BUFFER_BYTES / size_of::<u64>();
        let mut random = Random::keyed(2, 0x3e3, number.into());
        let lines = words / LINE_WORDS;
        let mut order: Vec<u32> = (0..lines as u32).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        let mut chain = vec![0; words];
        for (place, line) in order.iter().enumerate() {
            let next = order[(place + 1) % order.len()];
            chain[*line as usize * LINE_WORDS] = u64::from(next) * LINE_WORDS as u64;
        }
        Self { words: vec![1; words], pattern: 0, at: 0, chain }
    }

    pub(super) fn read(&self) {
        // Several sums, so that the additions do not depend on each other.
        let mut sums = [0_u64; 8];
        for line in self.words.chunks_exact(LINE_WORDS) {
            for (sum, word) in sums.iter_mut().zip(line) {
                *sum = sum.wrapping_add(*word);
            }
        }
        black_box(sums);
    }

    pub(super) fn write(&mut self) {
        self.pattern = self.pattern.wrapping_add(1);
        self.words.fill(self.pattern);
        black_box(&self.words);
    }

    pub(super) fn copy(&mut self) {
        let (from, to) = self.words.split_at_mut(BUFFER_BYTES / size_of::<u64>() / 2);
        to.copy_from_slice(from);
        black_box(&self.words);
    }

    pub(super) fn chase(&mut self) {
        let mut at = self.at;
        for _ in 0..CHASES {
            at = self.chain[at] as usize;
        }
        self.at = black_box(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_visits_every_line_once() {
        let memory = Memory::new(0);
        let lines = memory.chain.len() / LINE_WORDS;
        let mut at = 0;
        for step in 1..=lines {
            at = memory.chain[at] as usize;
            assert_eq!(at == 0, step == lines, "the way closes after all lines and not before");
        }
    }
}
