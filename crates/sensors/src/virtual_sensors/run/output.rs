//! The end of a sensor: types of the output, its rate, and one row for each time.

use std::collections::BTreeSet;

use super::super::descriptor::DataType;
use super::super::plan::Plan;
use super::super::sql::Datum;
use super::super::sql::expr::cast;
use super::counters::Counters;
use super::named_row::NamedRow;
use crate::virtual_sensors::limits::UNIQUE_TIMES_MAX;

/// A row of the output.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputRow {
    /// The time in milliseconds since 1970.
    pub timed: i64,
    /// The values, in the order of the output structure.
    pub values: Vec<Datum>,
}

#[derive(Debug, Default)]
pub(super) struct Output {
    last: Option<i64>,
    times: BTreeSet<i64>,
}

impl Output {
    /// The clock at the last row.
    pub(super) fn last(&self) -> Option<i64> {
        self.last
    }

    /// Takes the clock at the last row of before.
    pub(super) fn restore(&mut self, last: Option<i64>) {
        self.last = last;
    }

    /// Remembers the time of a row of before.
    pub(super) fn had(&mut self, timed: i64) {
        self.times.insert(timed);
        if self.times.len() > UNIQUE_TIMES_MAX {
            self.times.pop_first();
        }
    }

    /// The row as the output structure has it; `None` if it is left out.
    pub(super) fn row(
        &mut self,
        plan: &Plan,
        row: &NamedRow,
        now: i64,
        counters: &mut Counters,
    ) -> Result<Option<OutputRow>, String> {
        let mut values = Vec::with_capacity(plan.output.len());
        for field in &plan.output {
            let name = &field.name.value;
            let given = row.fields.iter().find(|(given, _)| given == name);
            let value = given.map_or(&Datum::Null, |(_, datum)| datum);
            values.push(fit(value, &field.data_type).map_err(|reason| format!("field {name:?}: {reason}"))?);
        }
        if plan.output_rate > 0 && self.last.is_some_and(|last| now.saturating_sub(last) < plan.output_rate) {
            counters.rows_over_rate += 1;
            return Ok(None);
        }
        self.last = Some(now);
        if plan.unique_timestamps {
            if self.times.contains(&row.timed) {
                counters.rows_of_known_time += 1;
                return Ok(None);
            }
            self.had(row.timed);
        }
        counters.rows += 1;
        Ok(Some(OutputRow { timed: row.timed, values }))
    }
}

/// A value as a type of the output. Numbers become other numbers, but never text, nor text a number.
fn fit(value: &Datum, data_type: &DataType) -> Result<Datum, String> {
    let is_text = matches!(value, Datum::Text(_));
    if value.is_null() {
        return Ok(Datum::Null);
    }
    if is_text == data_type.is_number() {
        return Err(format!("{value} is not of the type {data_type}"));
    }
    if let (Datum::Text(text), DataType::Varchar(Some(length)) | DataType::Char(length)) = (value, data_type)
    {
        let characters = text.chars().count();
        if characters > *length as usize {
            return Err(format!("the text has {characters} characters; {data_type} takes {length}"));
        }
    }
    cast(value, data_type)
}
