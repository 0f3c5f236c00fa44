//! One value per interval.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use model::{SeriesId, TimeRange, Timestamp, Value, ValueRef};
use store::{Order, Scan, Store, ValueColumn};

use super::{
    Aggregation, HistoryError, HistoryRequest, Sample, Sink, check, number_of, numbers, scan_of, value_of,
};

pub(super) fn read(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl Sink,
) -> Result<(), HistoryError> {
    let intervals = Intervals::new(request.range, request.interval_us);
    let count = intervals.count().saturating_mul(request.keys.len().max(1) as u64);
    check("the number of intervals over all keys", count, "ask for a longer interval or a shorter range")?;
    let mut of_keys: Vec<Reduced<'_>> =
        request.keys.iter().map(|_| Reduced::new(&intervals, request.aggregation)).collect();
    let mut runs = Vec::new();
    // Rows are cheapest in ascending order; the few values that come of them are turned round.
    let scan = Scan { order: Order::Ascending, ..scan_of(series, request, usize::MAX) };
    store.scan_blocks(&scan, &mut |block| {
        intervals.cut(block.times, &mut runs);
        of_keys.iter_mut().zip(block.columns).for_each(|(of_key, columns)| of_key.add(columns, &runs));
        ControlFlow::Continue(())
    })?;
    for (key, of_key) in of_keys.into_iter().enumerate() {
        let mut samples = of_key.end();
        if request.order == Order::Descending {
            samples.reverse();
        }
        if give_samples(sink, key, &samples).is_break() {
            break;
        }
    }
    Ok(())
}

/// Gives the values of a key to the sink: as numbers, if all are, as means are.
fn give_samples(sink: &mut impl Sink, key: usize, samples: &[Sample]) -> ControlFlow<()> {
    let numbers: Option<Vec<f64>> = samples.iter().map(|(_, value)| number_of(value)).collect();
    if let Some(numbers) = numbers {
        let times: Vec<i64> = samples.iter().map(|(ts, _)| ts.micros()).collect();
        return sink.numbers(key, &times, &numbers);
    }
    samples.iter().try_for_each(|(ts, value)| sink.value(key, *ts, value.as_ref()))
}

/// Rows of one interval.
type Run = (u64, Range<usize>);

/// What has become of the values of one key.
struct Reduced<'a> {
    intervals: &'a Intervals,
    aggregation: Aggregation,
    samples: Vec<Sample>,
    /// The interval that rows to come may belong to.
    open: Option<(u64, Accumulator)>,
}

impl<'a> Reduced<'a> {
    fn new(intervals: &'a Intervals, aggregation: Aggregation) -> Self {
        Self { intervals, aggregation, samples: Vec::new(), open: None }
    }

    /// Adds the rows of a block. Intervals ascend, so those between the first and the last of a block are in no other one.
    fn add(&mut self, columns: &[ValueColumn], runs: &[Run]) {
        let (first, inner, last) = match runs {
            [] => return,
            [only] => (only, [].as_slice(), None),
            [first, inner @ .., last] => (first, inner, Some(last)),
        };
        self.go_on(columns, first);
        if last.is_some() {
            self.close();
        }
        for (index, rows) in inner {
            let whole = self.accumulated(columns, rows);
            self.push(*index, whole);
        }
        if let Some(last) = last {
            self.go_on(columns, last);
        }
    }

    fn accumulated(&self, columns: &[ValueColumn], rows: &Range<usize>) -> Accumulator {
        let mut accumulator = Accumulator::new(self.aggregation);
        accumulator.add_rows(columns, rows.clone());
        accumulator
    }

    fn go_on(&mut self, columns: &[ValueColumn], (index, rows): &Run) {
        match &mut self.open {
            Some((open, accumulator)) if open == index => accumulator.add_rows(columns, rows.clone()),
            _ => {
                self.close();
                self.open = Some((*index, self.accumulated(columns, rows)));
            }
        }
    }

    fn close(&mut self) {
        if let Some((index, accumulator)) = self.open.take() {
            self.push(index, accumulator);
        }
    }

    fn push(&mut self, index: u64, accumulator: Accumulator) {
        self.samples.extend(accumulator.result().map(|value| (self.intervals.middle(index), value)));
    }

    fn end(mut self) -> Vec<Sample> {
        self.close();
        self.samples
    }
}

/// The intervals of a range, counted from its start. A range can be longer than an `i64` has numbers of microseconds.
struct Intervals {
    range: TimeRange,
    span_us: u64,
    length_us: u64,
}

impl Intervals {
    /// The range is not empty. An interval that is not positive is as long as the range.
    fn new(range: TimeRange, interval_us: i64) -> Self {
        let span_us = range.end.micros().abs_diff(range.start.micros());
        let length_us = u64::try_from(interval_us).ok().filter(|length_us| *length_us > 0);
        Self { range, span_us, length_us: length_us.map_or(span_us, |length_us| length_us.min(span_us)) }
    }

    fn count(&self) -> u64 {
        self.span_us.div_ceil(self.length_us)
    }

    /// A time so long after the start, not after the end.
    fn at(&self, offset_us: u64) -> i64 {
        self.range.start.micros().wrapping_add_unsigned(offset_us)
    }

    fn end_offset_us(&self, index: u64) -> u64 {
        (index * self.length_us).saturating_add(self.length_us).min(self.span_us)
    }

    fn middle(&self, index: u64) -> Timestamp {
        let (start_us, end_us) = (index * self.length_us, self.end_offset_us(index));
        Timestamp::from_micros(self.at(start_us + (end_us - start_us) / 2))
    }

    /// Runs of rows of one interval each; times ascend.
    fn cut(&self, times: &[i64], runs: &mut Vec<Run>) {
        runs.clear();
        let (mut begin, mut length) = (0, 1);
        while let Some(ts) = times.get(begin) {
            let index = ts.abs_diff(self.range.start.micros()) / self.length_us;
            let end = self.at(self.end_offset_us(index));
            // A row behind the range is not to be an endless loop.
            length = length_below(&times[begin..], end, length).max(1);
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
            Aggregation::Count if self.count > 0 => Some(Value::I64(self.count as i64)),
            Aggregation::Min | Aggregation::Max => self.extreme,
            Aggregation::Avg if self.numbers > 0 => Some(Value::F64(self.sum_f64 / self.numbers as f64)),
            Aggregation::Sum if self.numbers > 0 => {
                Some(self.sum_i64.filter(|_| !self.floats).map_or(Value::F64(self.sum_f64), Value::I64))
            }
            Aggregation::Count | Aggregation::Avg | Aggregation::Sum | Aggregation::None => None,
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
    use arrow_array::{Float64Array, Int64Array};

    use super::*;

    /// Eleven rows: numbers of two types, a hole of three rows, times with nothing between them.
    const TIMES: [i64; 11] = [0, 1, 2, 9, 10, 11, 12, 35, 36, 39, 58];
    const INTEGERS: [Option<i64>; 11] =
        [None, None, Some(3), None, None, None, None, Some(2), None, Some(7), None];
    const FLOATS: [Option<f64>; 11] =
        [Some(0.5), Some(1.5), None, Some(0.1), None, None, None, None, Some(4.0), None, Some(0.2)];

    fn reduced(aggregation: Aggregation, intervals: &Intervals, blocks: &[Range<usize>]) -> Vec<Sample> {
        let mut of_key = Reduced::new(intervals, aggregation);
        let mut runs = Vec::new();
        for rows in blocks {
            let columns = [
                ValueColumn::I64(Int64Array::from(INTEGERS[rows.clone()].to_vec())),
                ValueColumn::F64(Float64Array::from(FLOATS[rows.clone()].to_vec())),
            ];
            // Numbers without a hole are added another way.
            let columns = if numbers(&columns[1..]).is_some() { &columns[1..] } else { &columns };
            intervals.cut(&TIMES[rows.clone()], &mut runs);
            of_key.add(columns, &runs);
        }
        of_key.end()
    }

    #[test]
    fn blocks_of_any_lengths_give_the_same() {
        let range = TimeRange::new(Timestamp::from_micros(0), Timestamp::from_micros(60));
        for aggregation in
            [Aggregation::Min, Aggregation::Max, Aggregation::Avg, Aggregation::Sum, Aggregation::Count]
        {
            for length_us in [1, 3, 10, 30, 60] {
                let intervals = Intervals::new(range, length_us);
                let one_by_one: Vec<_> = (0..TIMES.len()).map(|row| row..row + 1).collect();
                let expected = reduced(aggregation, &intervals, &one_by_one);
                for cuts in 0..1 << (TIMES.len() - 1) {
                    let ends =
                        (1..=TIMES.len()).filter(|end| *end == TIMES.len() || cuts >> (end - 1) & 1 == 1);
                    let mut begin = 0;
                    let blocks: Vec<_> = ends.map(|end| std::mem::replace(&mut begin, end)..end).collect();
                    assert_eq!(
                        reduced(aggregation, &intervals, &blocks),
                        expected,
                        "{aggregation:?} {length_us} {blocks:?}"
                    );
                }
            }
        }
        assert_eq!(Intervals::new(range, 0).count(), 1);
        let sums = reduced(Aggregation::Sum, &Intervals::new(range, 30), &[0..4, 4..11]);
        let of = |micros, sum| (Timestamp::from_micros(micros), Value::F64(sum));
        assert_eq!(sums, [of(15, 5.1), of(45, 13.2)]);
    }

    #[test]
    fn ranges_longer_than_times_can_be_counted_have_their_intervals() {
        let year_us = 365 * 86_400_000_000;
        let intervals =
            Intervals::new(TimeRange::new(Timestamp::MIN, Timestamp::from_micros(year_us)), year_us);
        assert_eq!(intervals.count(), (1 << 63) / year_us as u64 + 2);
        let times = [i64::MIN, i64::MIN + 1, -1, 0, year_us - 1];
        let mut runs = Vec::new();
        intervals.cut(&times, &mut runs);
        let whole = (1 << 63) / year_us as u64;
        assert_eq!(runs, [(0, 0..2), (whole, 2..4), (whole + 1, 4..5)]);
        let middles: Vec<i64> = runs.iter().map(|(index, _)| intervals.middle(*index).micros()).collect();
        assert!(middles.is_sorted() && middles[0] == i64::MIN + year_us / 2, "{middles:?}");
        let ends = TimeRange::new(Timestamp::MIN, Timestamp::MAX);
        assert_eq!(Intervals::new(ends, i64::MAX).count(), 3);
    }

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
