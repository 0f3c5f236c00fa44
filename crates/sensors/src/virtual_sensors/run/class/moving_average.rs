//! The class SMACleaner: a value against the mean of those before it.

use std::collections::VecDeque;

use super::super::named_row::NamedRow;
use crate::virtual_sensors::sql::Datum;

#[derive(Debug)]
pub(in crate::virtual_sensors::run) struct MovingAverage {
    size: usize,
    threshold: f64,
    values: VecDeque<f64>,
}

impl MovingAverage {
    pub(super) fn new(size: usize, threshold: f64) -> Self {
        Self { size, threshold, values: VecDeque::new() }
    }

    pub(super) fn bits(&self) -> Vec<u64> {
        self.values.iter().map(|value| value.to_bits()).collect()
    }

    pub(super) fn restore(&mut self, bits: &[u64]) {
        self.values.extend(bits.iter().take(self.size).map(|bits| f64::from_bits(*bits)));
    }

    pub(super) fn row(&mut self, row: &NamedRow) -> Result<Option<NamedRow>, String> {
        let value = row.first_number()?;
        let full = self.values.len() == self.size;
        let mean = self.values.iter().sum::<f64>() / self.size as f64;
        if full {
            self.values.pop_front();
        }
        self.values.push_back(value);
        if !full {
            return Ok(None);
        }
        // Without the absolute value a negative reading would always be acceptable.
        let acceptable = (value - mean).abs() <= self.threshold * value.abs();
        let fields = vec![
            ("raw_value".into(), Datum::Float(value)),
            ("acceptable".into(), Datum::Int(i64::from(acceptable))),
        ];
        Ok(Some(NamedRow { timed: row.timed, fields }))
    }
}
