//! One value per interval.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use model::{SeriesId, TimeRange, Timestamp, Value, ValueRef};
use store::{Order, Scan, Store, ValueColumn};

use super::{Aggregation, HistoryError, HistoryRequest, Sample, Sink, check, numbers, scan_of, value_of};

pub(super) fn read(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl Sink,
) -> Result<(), HistoryError> {
    let intervals = Intervals::of(request);
    let count = intervals.count().saturating_mul(request.keys.len().max(1) as u64);
    check("the number of intervals over all keys", count, "ask for a longer interval or a shorter range")?;
    let mut open: Vec<Option<(i64, Accumulator)>> = vec![None; request.keys.len()];
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); request.keys.len()];
    let mut runs = Vec::new();
    let close = |samples: &mut Vec<Sample>, (index, accumulator): (i64, Accumulator)| {
        samples.extend(accumulator.result().map(|value| (intervals.middle(index), value)));
    };
    // Rows are cheapest in ascending order; the few values that come of them are turned round.
    let scan = Scan { order: Order::Ascending, ..scan_of(series, request, usize::MAX) };
    store.scan_blocks(&scan, &mut |block| {
        intervals.cut(block.times, &mut runs);
        for ((open, samples), columns) in open.iter_mut().zip(&mut samples).zip(block.columns) {
            for (index, rows) in &runs {
                let mut of_run = match open.take_if(|(open_index, _)| open_index == index) {
                    Some((_, accumulator)) => accumulator,
                    None => Accumulator::new(request.aggregation),
                };
                of_run.add_rows(columns, rows.clone());
                if of_run.is_empty() {
                    continue;
                }
                if let Some(done) = open.replace((*index, of_run)) {
                    close(samples, done);
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    for (key, (open, mut samples)) in open.into_iter().zip(samples).enumerate() {
        open.into_iter().for_each(|last| close(&mut samples, last));
        if request.order == Order::Descending {
            samples.reverse();
        }
        if samples.iter().any(|(ts, value)| sink.value(key, *ts, value.as_ref()).is_break()) {
            break;
        }
    }
    Ok(())
}

/// The intervals of a range, counted from its start.
struct Intervals {
    range: TimeRange,
    length_us: i64,
}

impl Intervals {
    /// The range of the request is not empty.
    fn of(request: &HistoryRequest) -> Self {
        let range = request.range;
        let span_us = range.end.micros().saturating_sub(range.start.micros());
        let length_us = if request.interval_us <= 0 { span_us } else { request.interval_us.min(span_us) };
        Self { range, length_us }
    }

    fn count(&self) -> u64 {
        let span_us = self.range.end.micros().saturating_sub(self.range.start.micros());
        (span_us as u64).div_ceil(self.length_us as u64)
    }

    fn start(&self, index: i64) -> i64 {
        self.range.start.micros() + index * self.length_us
    }

    fn end(&self, index: i64) -> i64 {
        self.start(index).saturating_add(self.length_us).min(self.range.end.micros())
    }

    fn middle(&self, index: i64) -> Timestamp {
        let (start, end) = (self.start(index), self.end(index));
        Timestamp::from_micros(start + (end - start) / 2)
    }

    /// Runs of rows of one interval each; times ascend.
    fn cut(&self, times: &[i64], runs: &mut Vec<(i64, Range<usize>)>) {
        runs.clear();
        let (mut begin, mut length) = (0, 1);
        while let Some(ts) = times.get(begin) {
            let index = ts.saturating_sub(self.range.start.micros()) / self.length_us;
            // Where numbers of microseconds end, the last interval may be cut short of its last row.
            length = length_below(&times[begin..], self.end(index), length).max(1);
            runs.push((index, begin..begin + length));
            begin += length;
        }
    }
}

/// How many of the ascending times are before `end`. Most intervals have as many as the one before, so `guess` is tried.
fn length_below(times: &[i64], end: i64, guess: usize) -> usize {
    let is_below = |at: usize| times.get(at).is_some_and(|ts| *ts < end);
    if is_below(guess - 1) && !is_below(guess) {
        return guess;
    }
    times.partition_point(|ts| *ts < end)
}

/// What has been seen of one interval.
#[derive(Debug, Clone)]
struct Accumulator {
    aggregation: Aggregation,
    count: u64,
    numbers: u64,
    sum_f64: f64,
    sum_i64: Option<i64>,
    floats: bool,
    extreme: Option<Value>,
}

impl Accumulator {
    fn new(aggregation: Aggregation) -> Self {
        Self { aggregation, count: 0, numbers: 0, sum_f64: 0.0, sum_i64: None, floats: false, extreme: None }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds what the rows have in the columns of one key.
    fn add_rows(&mut self, columns: &[ValueColumn], rows: Range<usize>) {
        let sums = matches!(self.aggregation, Aggregation::Avg | Aggregation::Sum);
        match numbers(columns) {
            Some(numbers) if sums => {
                self.count += rows.len() as u64;
                self.add_floats(&numbers[rows]);
            }
            _ => rows.filter_map(|row| value_of(columns, row)).for_each(|value| self.add(value)),
        }
    }

    /// Adds some numbers, at least one.
    fn add_floats(&mut self, numbers: &[f64]) {
        self.numbers += numbers.len() as u64;
        self.sum_i64 = None;
        self.floats = true;
        self.sum_f64 = numbers.iter().fold(self.sum_f64, |sum, number| sum + number);
    }

    fn add(&mut self, value: ValueRef<'_>) {
        self.count += 1;
        match self.aggregation {
            Aggregation::None | Aggregation::Count => {}
            Aggregation::Avg | Aggregation::Sum => match value {
                ValueRef::I64(number) => self.add_integer(number),
                ValueRef::F64(number) => self.add_floats(&[number]),
                ValueRef::Bool(_) | ValueRef::String(_) | ValueRef::Json(_) => {}
            },
            Aggregation::Min => self.replace(value, Ordering::Less),
            Aggregation::Max => self.replace(value, Ordering::Greater),
        }
    }

    fn add_integer(&mut self, integer: i64) {
        self.sum_i64 = match (self.numbers, self.sum_i64) {
            (0, _) => Some(integer),
            (_, sum) => sum.and_then(|sum| sum.checked_add(integer)),
        };
        self.numbers += 1;
        self.sum_f64 += integer as f64;
    }

    fn replace(&mut self, value: ValueRef<'_>, wanted: Ordering) {
        if is_replaced(value, self.extreme.as_ref(), wanted) {
            self.extreme = Some(value.to_owned());
        }
    }

    fn result(self) -> Option<Value> {
        match self.aggregation {
            Aggregation::Count => Some(Value::I64(self.count as i64)),
            Aggregation::Min | Aggregation::Max => self.extreme,
            Aggregation::Avg if self.numbers > 0 => Some(Value::F64(self.sum_f64 / self.numbers as f64)),
            Aggregation::Sum if self.numbers > 0 => {
                Some(self.sum_i64.filter(|_| !self.floats).map_or(Value::F64(self.sum_f64), Value::I64))
            }
            Aggregation::Avg | Aggregation::Sum | Aggregation::None => None,
        }
    }
}

/// Numbers go before strings; other types have no order.
fn is_replaced(value: ValueRef<'_>, present: Option<&Value>, wanted: Ordering) -> bool {
    if !matches!(value, ValueRef::I64(_) | ValueRef::F64(_) | ValueRef::String(_)) {
        return false;
    }
    match (value, present.map(Value::as_ref)) {
        (_, None) => true,
        (ValueRef::String(one), Some(ValueRef::String(other))) => one.cmp(other) == wanted,
        (ValueRef::I64(one), Some(ValueRef::I64(other))) => one.cmp(&other) == wanted,
        (ValueRef::String(_), _) => false,
        (_, Some(ValueRef::String(_))) => true,
        (one, Some(other)) => number(one).partial_cmp(&number(other)) == Some(wanted),
    }
}

fn number(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::I64(number) => number as f64,
        ValueRef::F64(number) => number,
        ValueRef::Bool(_) | ValueRef::String(_) | ValueRef::Json(_) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guess_changes_nothing() {
        let times = [-7, -7, 0, 1, 3, 3, 3, 8];
        for count in 1..=times.len() {
            for end in -9..10 {
                let expected = times[..count].iter().filter(|ts| **ts < end).count();
                for guess in 1..12 {
                    assert_eq!(length_below(&times[..count], end, guess), expected, "{count} {end} {guess}");
                }
            }
        }
    }
}
