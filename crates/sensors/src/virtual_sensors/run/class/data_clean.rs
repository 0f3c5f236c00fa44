//! The class DataClean: a model is fitted to a full window, and values far from it are marked.

use super::super::checkpoint::ClassPoint;
use super::super::named_row::NamedRow;
use super::model_fit::fit;
use crate::virtual_sensors::plan::DataCleanPlan;
use crate::virtual_sensors::sql::Datum;

#[derive(Debug)]
pub(in crate::virtual_sensors::run) struct DataClean {
    plan: DataCleanPlan,
    /// Times with values, in the order in which they came.
    values: Vec<(i64, f64)>,
}

impl DataClean {
    pub(super) fn new(plan: DataCleanPlan) -> Self {
        Self { plan, values: Vec::new() }
    }

    pub(super) fn point(&self) -> ClassPoint {
        ClassPoint::DataClean {
            values: self.values.iter().map(|(timed, value)| (*timed, value.to_bits())).collect(),
        }
    }

    pub(super) fn restore(&mut self, values: &[(i64, u64)]) {
        let known = values.iter().take(self.plan.window_size - 1);
        self.values.extend(known.map(|(timed, bits)| (*timed, f64::from_bits(*bits))));
    }

    pub(super) fn row(&mut self, row: &NamedRow, given: &mut Vec<NamedRow>) -> Result<(), String> {
        self.values.push((row.timed, row.first_number()?));
        if self.values.len() < self.plan.window_size {
            return Ok(());
        }
        let window = std::mem::take(&mut self.values);
        let processed = fit(self.plan.model, &window);
        for ((timed, value), processed) in window.into_iter().zip(processed) {
            given.push(self.cleaned(timed, value, processed)?);
        }
        Ok(())
    }

    fn cleaned(&self, timed: i64, value: f64, processed: f64) -> Result<NamedRow, String> {
        let distance = processed - value;
        let is_dirty = distance.abs() > self.plan.error_bound;
        let fields = vec![
            ("stream".into(), Datum::Float(value)),
            ("processed".into(), Datum::finite(processed, "the value of the model")?),
            ("dirtiness".into(), Datum::Float(f64::from(u8::from(is_dirty)))),
            ("distance".into(), Datum::finite(distance, "the distance from the model")?),
            // GSN's models of these kinds say nothing about their quality.
            ("quality".into(), Datum::Float(0.0)),
        ];
        Ok(NamedRow { timed, fields })
    }
}
