//! Processor kernels. All data stays in the first-level caches.

use std::collections::HashMap;
use std::hint::black_box;

use load::dataset::fnv64;

/// Rounds of one operation.
pub(super) const ROUNDS: u32 = 10_000;
const RECORDS: usize = 16;
const TABLE: u64 = 1_024;

#[derive(Debug, Clone, Default)]
struct Record {
    kind: u8,
    count: i64,
    text: [u8; 32],
    next: usize,
}

/// The state of the kernels. It depends on every round, so that the compiler cannot remove one.
#[derive(Debug)]
pub(super) struct Compute {
    records: Vec<Record>,
    seed: u64,
    x: f64,
    matrix: [[f64; 4]; 4],
    table: HashMap<u64, u64>,
}

impl Default for Compute {
    fn default() -> Self {
        let records = (0..RECORDS).map(|n| Record { next: (n * 7 + 3) % RECORDS, ..Record::default() });
        Self {
            records: records.collect(),
            seed: 0x1234_5678,
            x: 0.75,
            matrix: [[0.5, 0.25, 0.125, 0.125]; 4],
            table: (0..TABLE).map(|n| (fnv64(n), n)).collect(),
        }
    }
}

impl Compute {
    /// Follows a chain of records: arithmetic, branches, copies and comparisons of text.
    pub(super) fn integer(&mut self) {
        let mut at = 0;
        for round in 0..ROUNDS {
            let number = i64::from(round);
            let record = &mut self.records[at];
            record.count = record.count.wrapping_mul(31).wrapping_add(number) ^ (record.count >> 7);
            record.kind = match record.count & 7 {
                0 | 3 => record.kind.wrapping_add(1),
                1 if number % 5 == 2 => 9,
                _ => record.kind ^ (number / 3) as u8,
            };
            record.text[(round & 31) as usize] = record.kind;
            let (next, text) = (record.next, record.text);
            if self.records[next].text < text {
                self.records[next].text = text;
            }
            at = next;
        }
        black_box(&self.records);
    }

    /// Computes a polynomial, a sine, an exponential and a small matrix.
    pub(super) fn float(&mut self) {
        let mut x = self.x;
        for round in 0..ROUNDS {
            let y = 0.499_975 * x + f64::from(round & 15) * 1e-3;
            x = ((y * 0.3 + 0.7) * y - 0.2) * y + 0.1;
            if round & 7 == 0 {
                x += libm::sin(x) * libm::exp(-y * y);
            }
            let row = (round & 3) as usize;
            for column in 0..4 {
                self.matrix[row][column] =
                    self.matrix[row][column] * 0.5 + self.matrix[column][row] * 0.25 + x * 0.125;
            }
        }
        self.x = black_box(x.clamp(-10.0, 10.0));
        black_box(&self.matrix);
    }

    /// Looks up keys in the standard library's hash map; half of them are missing.
    pub(super) fn hash(&mut self) {
        let mut found = 0_u64;
        for _ in 0..ROUNDS {
            self.seed =
                self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = fnv64((self.seed >> 33) % (2 * TABLE));
            found = found.wrapping_add(self.table.get(&key).copied().unwrap_or(1));
        }
        black_box(found);
    }
}
