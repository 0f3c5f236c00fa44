//! The rows of the table and their values, as PerformanceEvaluation makes them.
//!
//! A row is a decimal number with leading zeros. A value is runs of 8 equal letters from A to Z; the last run has the
//! bytes that remain, 1 to 8.

use load::dataset::Random;
use serde::Deserialize;

use super::java_random::JavaRandom;
use crate::limits::{HBASE_REGIONS_MAX, HBASE_ROW_BYTES_MAX, HBASE_VALUE_BYTES_MAX};

/// The domain of random numbers of values.
const DOMAIN: u64 = 0x4842_6173;
const RUN_BYTES: usize = 8;
const LETTERS: u64 = 26;

/// The source of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Values {
    /// The letters follow from the row, so that a reader can check them.
    Row,
    /// The letters come from the client's `java.util.Random`, as in PerformanceEvaluation. A reader can only check their
    /// form.
    Pe,
}

/// `[dataset]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Dataset {
    pub(super) table: String,
    /// The column family: `info0` from HBase 2.0 on, `info` before.
    pub(super) family: String,
    /// The number of rows: PerformanceEvaluation's rows per client times its clients.
    pub(super) rows: u64,
    /// The digits of a row: 26, or 10 before HBase 0.98.
    pub(super) row_bytes: usize,
    /// The bytes of a value.
    pub(super) value_bytes: usize,
    /// The source of values.
    pub(super) values: Values,
    /// The number of regions of a new table; 0 for one.
    pub(super) presplit: u32,
    /// The seed of values.
    #[serde(skip)]
    pub(super) seed: u64,
}

impl Default for Dataset {
    fn default() -> Self {
        Self {
            table: "TestTable".to_owned(),
            family: "info0".to_owned(),
            rows: 500_000,
            row_bytes: 26,
            value_bytes: 1_000,
            values: Values::Row,
            presplit: 0,
            seed: 1,
        }
    }
}

impl Dataset {
    /// Checks the numbers. The error names the key.
    pub(super) fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(format!("[dataset]: {name} = {value}; use {low} to {high}"))
        };
        within("rows", self.rows, 1, i32::MAX as u64)?;
        let digits = u64::from((self.rows + 10_000).ilog10()) + 1;
        within("row_bytes", self.row_bytes as u64, digits, HBASE_ROW_BYTES_MAX as u64)?;
        within("value_bytes", self.value_bytes as u64, 1, HBASE_VALUE_BYTES_MAX as u64)?;
        within("presplit", self.presplit.into(), 0, HBASE_REGIONS_MAX.min(self.rows))?;
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        };
        for (key, name) in [("table", &self.table), ("family", &self.family)] {
            if !is_name(name) {
                return Err(format!("[dataset]: {key} = {name:?}; use letters, digits, `_`, `-` and `.`"));
            }
        }
        Ok(())
    }

    /// Appends a row.
    pub(super) fn row(&self, number: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.row_bytes, b'0');
        let mut rest = number;
        for digit in out[start..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// The number of a row; `None` if it is none of this data set.
    pub(super) fn number(&self, row: &[u8]) -> Option<u64> {
        if row.len() != self.row_bytes || !row.iter().all(u8::is_ascii_digit) {
            return None;
        }
        row.iter()
            .try_fold(0_u64, |number, digit| number.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
    }

    /// A random row, as PerformanceEvaluation 2.x draws it. Later versions draw 63 bits, which changes the order of
    /// rows but not their distribution.
    pub(super) fn random_row(&self, random: &mut JavaRandom) -> u64 {
        u64::from(random.next_int(i32::MAX).unsigned_abs()) % self.rows
    }

    /// The number of letters of a value.
    pub(super) fn letters(&self) -> usize {
        self.value_bytes.div_ceil(RUN_BYTES)
    }

    /// Appends the letters of the value that is written to a row.
    pub(super) fn draw(&self, number: u64, random: &mut JavaRandom, out: &mut Vec<u8>) {
        match self.values {
            Values::Row => self.letters_of_row(number, out),
            Values::Pe => {
                out.extend((0..self.letters()).map(|_| b'A' + random.next_int(LETTERS as i32) as u8))
            }
        }
    }

    fn letters_of_row(&self, number: u64, out: &mut Vec<u8>) {
        let mut random = Random::keyed(self.seed, DOMAIN, number);
        out.extend((0..self.letters()).map(|_| b'A' + random.below(LETTERS) as u8));
    }

    /// Appends the value with these letters.
    pub(super) fn value(&self, letters: &[u8], out: &mut Vec<u8>) {
        let end = out.len() + self.value_bytes;
        letters.iter().for_each(|letter| out.extend_from_slice(&[*letter; RUN_BYTES]));
        out.truncate(end);
    }

    /// Checks the value of a row. `letters` is memory to use.
    pub(super) fn check_value(&self, number: u64, value: &[u8], letters: &mut Vec<u8>) -> Result<(), String> {
        if value.len() != self.value_bytes {
            return Err(format!("a value has {} bytes instead of {}", value.len(), self.value_bytes));
        }
        letters.clear();
        match self.values {
            Values::Row => self.letters_of_row(number, letters),
            Values::Pe => letters.extend(value.iter().step_by(RUN_BYTES)),
        }
        let is_run = |(run, letter): (&[u8], &u8)| run.iter().all(|byte| byte == letter);
        if letters.iter().all(u8::is_ascii_uppercase) && value.chunks(RUN_BYTES).zip(&*letters).all(is_run) {
            return Ok(());
        }
        Err("a value is not the one of its row".to_owned())
    }

    /// The first rows of all regions but the first, as PerformanceEvaluation's `--presplit` makes them.
    pub(super) fn splits(&self) -> Vec<Vec<u8>> {
        let jump = self.rows / u64::from(self.presplit.max(1));
        let split = |index: u64| {
            let mut row = Vec::new();
            self.row(jump * index, &mut row);
            row
        };
        (1..u64::from(self.presplit)).map(split).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_values_are_those_of_performance_evaluation() {
        let data = Dataset { values: Values::Pe, ..Dataset::default() };
        let mut row = Vec::new();
        data.row(123_456, &mut row);
        assert_eq!(row, b"00000000000000000000123456");
        assert_eq!((data.number(&row), data.number(b"123456")), (Some(123_456), None));
        // PerformanceEvaluation.generateData(new Random(7), 1000) of HBase 2.6.1.
        let (mut letters, mut value) = (Vec::new(), Vec::new());
        data.draw(0, &mut JavaRandom::new(7), &mut letters);
        data.value(&letters, &mut value);
        assert_eq!((letters.len(), value.len()), (125, 1_000));
        assert!(value.starts_with(b"QQQQQQQQMMMMMMMMDDDDDDDDKKKKKKKKIIIIIIII"));
        assert!(value.ends_with(b"BBBBBBBBBBBBBBBBNNNNNNNN"));
        assert_eq!(data.check_value(0, &value, &mut letters), Ok(()));
        value[3] = b'a';
        assert!(data.check_value(0, &value, &mut letters).is_err());
    }

    #[test]
    fn a_value_of_another_row_is_noticed() {
        let data = Dataset { value_bytes: 21, ..Dataset::default() };
        let (mut letters, mut value) = (Vec::new(), Vec::new());
        data.draw(5, &mut JavaRandom::new(1), &mut letters);
        data.value(&letters, &mut value);
        assert_eq!(value.len(), 21);
        assert_eq!(data.check_value(5, &value, &mut letters), Ok(()));
        assert!(data.check_value(6, &value, &mut letters).unwrap_err().contains("not the one of its row"));
        assert!(
            data.check_value(5, &value[1..], &mut letters).unwrap_err().contains("20 bytes instead of 21")
        );
    }

    #[test]
    fn regions_split_the_rows_evenly() {
        let data = Dataset { rows: 1_001, presplit: 4, row_bytes: 10, ..Dataset::default() };
        let splits: Vec<String> =
            data.splits().into_iter().map(|row| String::from_utf8(row).unwrap()).collect();
        assert_eq!(splits, ["0000000250", "0000000500", "0000000750"]);
        assert!(Dataset { presplit: 1, ..data }.splits().is_empty());
    }

    #[test]
    fn numbers_out_of_range_name_their_key() {
        let error = |data: Dataset| data.check().unwrap_err();
        assert!(error(Dataset { rows: 0, ..Dataset::default() }).contains("rows = 0"));
        assert!(error(Dataset { row_bytes: 4, ..Dataset::default() }).contains("row_bytes = 4; use 6 to"));
        assert!(error(Dataset { value_bytes: 0, ..Dataset::default() }).contains("value_bytes"));
        assert!(error(Dataset { table: "a b".into(), ..Dataset::default() }).contains("table"));
        assert_eq!(Dataset::default().check(), Ok(()));
    }
}
