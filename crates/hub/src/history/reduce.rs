//! One value per interval, of one series or of several together.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{self, AtomicI64};

use model::limits::READ_TEXT_BYTES_MAX;
use model::{SeriesId, TimeRange, Timestamp, Value, ValueRef};
use store::{Order, Scan, Store, ValueColumn};

use super::number::Number;
use super::rows::give_reduced;
use super::{
    Aggregation, History, HistoryError, HistoryRequest, RowSink, Sample, Sink, check, number_of, numbers,
    scan_of, value_of,
};

/// Intervals of a page.
const PAGE: usize = 64;

/// What has become of the values of some series: for each key and interval what all of them together have.
#[derive(Debug)]
pub struct Reduction {
    intervals: Intervals,
    /// What an interval without rows has.
    empty: Accumulator,
    of_keys: Vec<Reduced>,
}

/// The bytes of text that reductions of one request hold together: numbers are bounded by their count, texts are not.
#[derive(Debug, Default)]
pub struct TextHeld(AtomicI64);

impl TextHeld {
    fn add(&self, bytes: i64) -> u64 {
        u64::try_from(self.0.fetch_add(bytes, atomic::Ordering::Relaxed) + bytes).unwrap_or(0)
    }
}

impl Reduction {
    /// Reduces the values of the series as the request says, which has an aggregation. Each series counts as often as it
    /// is named. Reads files: call it where blocking is allowed.
    pub fn read(
        store: &dyn Store,
        series: &[SeriesId],
        request: &HistoryRequest,
        text: &TextHeld,
    ) -> Result<Self, HistoryError> {
        check_intervals(request, 1)?;
        let intervals = Intervals::new(request.range, request.interval_us);
        let empty = Accumulator::new(request.aggregation);
        let mut reduction = Self { intervals, empty, of_keys: vec![Reduced::default(); request.keys.len()] };
        let mut runs = Vec::new();
        for series in series.iter().filter(|_| !request.range.is_empty()) {
            reduction.add(store, *series, request, text, &mut runs)?;
        }
        Ok(reduction)
    }

    /// Adds the rows of a series. They are cheapest in ascending order; the few values that come of them are turned round.
    fn add(
        &mut self,
        store: &dyn Store,
        series: SeriesId,
        request: &HistoryRequest,
        text: &TextHeld,
        runs: &mut Vec<Run>,
    ) -> Result<(), HistoryError> {
        let mut held = 0;
        let scan = Scan { order: Order::Ascending, ..scan_of(series, request, usize::MAX) };
        store.scan_blocks(&scan, &mut |block| {
            held = text.add(self.add_block(block.times, block.columns, runs));
            if held > READ_TEXT_BYTES_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if held > READ_TEXT_BYTES_MAX {
            return Err(HistoryError::OverLimit {
                what: "the text of the smallest or largest values in bytes",
                actual: held,
                limit: READ_TEXT_BYTES_MAX,
                remedy: "ask for fewer devices or keys, or a longer interval",
            });
        }
        Ok(())
    }

    /// Returns how many bytes of text more are held.
    fn add_block(&mut self, times: &[i64], columns: &[Vec<ValueColumn>], runs: &mut Vec<Run>) -> i64 {
        let Self { intervals, empty, of_keys } = self;
        intervals.cut(times, runs);
        let mut text = 0;
        for (of_key, columns) in of_keys.iter_mut().zip(columns) {
            for (index, rows) in &*runs {
                text += of_key.at(*index, intervals, empty).add_rows(columns, rows.clone());
            }
        }
        text
    }

    /// Adds what has become of other series, reduced by the same request.
    pub fn merge(&mut self, other: Self) {
        self.of_keys.iter_mut().zip(other.of_keys).for_each(|(one, other)| one.merge(other));
    }

    /// Gives the values of each key to the sink.
    pub fn give(self, order: Order, sink: &mut impl Sink) {
        for (key, samples) in self.samples(order).enumerate() {
            if give_samples(sink, key, &samples).is_break() {
                break;
            }
        }
    }

    /// Gives the values to the sink, those of all keys in one interval as a row. The keys are those of the request.
    pub fn give_rows(self, keys: &[String], order: Order, sink: &mut impl RowSink) {
        let history: History = keys.iter().cloned().zip(self.samples(order)).collect();
        give_reduced(&history, order, sink);
    }

    fn samples(self, order: Order) -> impl Iterator<Item = Vec<Sample>> {
        let Self { intervals, of_keys, .. } = self;
        of_keys.into_iter().map(move |of_key| {
            let mut samples = of_key.samples(&intervals);
            if order == Order::Descending {
                samples.reverse();
            }
            samples
        })
    }
}

/// How many values so many answers to a request can have; refuses more than may be held at once.
pub fn check_intervals(request: &HistoryRequest, answers: usize) -> Result<u64, HistoryError> {
    let intervals = Intervals::new(request.range, request.interval_us).count().max(1);
    let lists = (request.keys.len().max(1) as u64).saturating_mul(answers as u64);
    let count = intervals.saturating_mul(lists);
    let (what, remedy) = match answers {
        0 | 1 => ("the number of intervals over all keys", "ask for a longer interval or a shorter range"),
        _ => (
            "the number of intervals over all keys and groups",
            "ask for a longer interval, a shorter range or fewer groups",
        ),
    };
    check(what, count, remedy)?;
    Ok(count)
}

pub(super) fn read(
    store: &dyn Store,
    series: SeriesId,
    request: &HistoryRequest,
    sink: &mut impl Sink,
) -> Result<(), HistoryError> {
    Reduction::read(store, &[series], request, &TextHeld::default())?.give(request.order, sink);
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

/// What has become of the values of one key: an accumulator for each interval, in pages that are made when an interval
/// of theirs has a row.
#[derive(Debug, Clone, Default)]
struct Reduced {
    pages: Vec<Vec<Accumulator>>,
}

impl Reduced {
    fn at(&mut self, index: u64, intervals: &Intervals, empty: &Accumulator) -> &mut Accumulator {
        let index = usize::try_from(index).expect("BUG: intervals were counted");
        let (page, place) = (index / PAGE, index % PAGE);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, Vec::new);
        }
        let page = &mut self.pages[page];
        if page.is_empty() {
            let left = intervals.count() - (index - place) as u64;
            page.resize(left.min(PAGE as u64) as usize, empty.clone());
        }
        &mut page[place]
    }

    fn merge(&mut self, other: Self) {
        if other.pages.len() > self.pages.len() {
            self.pages.resize_with(other.pages.len(), Vec::new);
        }
        for (page, other) in self.pages.iter_mut().zip(other.pages) {
            if page.is_empty() {
                *page = other;
            } else {
                page.iter_mut().zip(other).for_each(|(one, other)| one.merge(other));
            }
        }
    }

    fn samples(self, intervals: &Intervals) -> Vec<Sample> {
        let pages = self.pages.into_iter().zip((0..).step_by(PAGE));
        let accumulators = pages.flat_map(|(page, first)| page.into_iter().zip(first..));
        accumulators
            .filter_map(|(accumulator, index)| Some((intervals.middle(index), accumulator.result()?)))
            .collect()
    }
}

/// The intervals of a range, counted from its start. A range can be longer than an `i64` has numbers of microseconds.
#[derive(Debug, Clone)]
struct Intervals {
    range: TimeRange,
    span_us: u64,
    length_us: u64,
}

impl Intervals {
    /// An interval that is not positive is as long as the range.
    fn new(range: TimeRange, interval_us: i64) -> Self {
        let span_us = if range.is_empty() { 0 } else { range.end.micros().abs_diff(range.start.micros()) };
        let length_us = u64::try_from(interval_us).ok().filter(|length_us| *length_us > 0);
        let length_us = length_us.map_or(span_us, |length_us| length_us.min(span_us)).max(1);
        Self { range, span_us, length_us }
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

    /// Runs of rows of one interval each; times ascend and are inside the range.
    fn cut(&self, times: &[i64], runs: &mut Vec<Run>) {
        runs.clear();
        let (mut begin, mut length) = (0, 1);
        while let Some(ts) = times.get(begin) {
            let offset_us = ts.abs_diff(self.range.start.micros());
            assert!(offset_us < self.span_us, "BUG: a row outside of the range that was asked for");
            let index = offset_us / self.length_us;
            let end = self.at(self.end_offset_us(index));
            length = length_below(&times[begin..], end, length);
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
enum Accumulator {
    /// Values of any type.
    Count(u64),
    Numbers {
        count: u64,
        sum: f64,
        /// As long as all are integers and it fits.
        integers: Option<i64>,
        mean: bool,
    },
    Extreme {
        wanted: Ordering,
        value: Option<Value>,
    },
}

impl Accumulator {
    fn new(aggregation: Aggregation) -> Self {
        let numbers = |mean| Self::Numbers { count: 0, sum: 0.0, integers: Some(0), mean };
        let extreme = |wanted| Self::Extreme { wanted, value: None };
        match aggregation {
            Aggregation::Avg => numbers(true),
            Aggregation::Sum => numbers(false),
            Aggregation::Min => extreme(Ordering::Less),
            Aggregation::Max => extreme(Ordering::Greater),
            Aggregation::Count => Self::Count(0),
            Aggregation::None => panic!("BUG: plain values are not reduced"),
        }
    }

    /// Adds what the rows have in the columns of one key; returns how many bytes of text more are held.
    fn add_rows(&mut self, columns: &[ValueColumn], rows: Range<usize>) -> i64 {
        match (&mut *self, numbers(columns)) {
            (Self::Numbers { count, sum, integers, .. }, Some(numbers)) => {
                *count += rows.len() as u64;
                *integers = None;
                *sum = numbers[rows].iter().fold(*sum, |sum, number| sum + number);
                0
            }
            (Self::Count(count), Some(_)) => {
                *count += rows.len() as u64;
                0
            }
            _ => {
                let held = self.text_bytes();
                rows.filter_map(|row| value_of(columns, row)).for_each(|value| self.add(value));
                self.text_bytes() - held
            }
        }
    }

    fn text_bytes(&self) -> i64 {
        match self {
            Self::Extreme { value: Some(Value::String(text) | Value::Json(text)), .. } => text.len() as i64,
            Self::Extreme { .. } | Self::Count(_) | Self::Numbers { .. } => 0,
        }
    }

    fn add(&mut self, value: ValueRef<'_>) {
        match self {
            Self::Count(count) => *count += 1,
            Self::Numbers { count, sum, integers, .. } => {
                let Some(number) = Number::of(value) else { return };
                *count += 1;
                *sum += number.to_f64();
                let integer = if let Number::I64(integer) = number { Some(integer) } else { None };
                *integers = add_integers(*integers, integer);
            }
            Self::Extreme { wanted, value: present } => {
                if is_replaced(value, present.as_ref(), *wanted) {
                    *present = Some(value.to_owned());
                }
            }
        }
    }

    /// Adds what has been seen of the same interval elsewhere.
    fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Count(count), Self::Count(more)) => *count += more,
            (
                Self::Numbers { count, sum, integers, .. },
                Self::Numbers { count: more, sum: more_sum, integers: more_integers, .. },
            ) => {
                *count += more;
                *sum += more_sum;
                *integers = add_integers(*integers, more_integers);
            }
            (one, Self::Extreme { value, .. }) => {
                value.iter().for_each(|value| one.add(value.as_ref()));
            }
            _ => panic!("BUG: reductions of different requests"),
        }
    }

    fn result(self) -> Option<Value> {
        match self {
            Self::Count(0) | Self::Numbers { count: 0, .. } => None,
            Self::Count(count) => Some(Value::I64(count as i64)),
            Self::Numbers { count, sum, mean: true, .. } => Some(Value::F64(sum / count as f64)),
            Self::Numbers { integers: Some(sum), .. } => Some(Value::I64(sum)),
            Self::Numbers { sum, .. } => Some(Value::F64(sum)),
            Self::Extreme { value, .. } => value,
        }
    }
}

fn add_integers(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one?.checked_add(other?)
}

/// Numbers go before strings; other types have no order.
fn is_replaced(value: ValueRef<'_>, present: Option<&Value>, wanted: Ordering) -> bool {
    let present = present.map(Value::as_ref);
    match (Number::of(value), present) {
        (Some(number), Some(present)) => {
            Number::of(present).is_none_or(|present| number.compare(present) == wanted)
        }
        (Some(_), None) => true,
        (None, present) => match (value, present) {
            (ValueRef::String(_), None) => true,
            (ValueRef::String(one), Some(ValueRef::String(other))) => one.cmp(other) == wanted,
            _ => false,
        },
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
        let of_keys = vec![Reduced::default()];
        let (intervals, empty) = (intervals.clone(), Accumulator::new(aggregation));
        let mut reduction = Reduction { intervals, empty, of_keys };
        let mut runs = Vec::new();
        for rows in blocks {
            let columns = [
                ValueColumn::I64(Int64Array::from(INTEGERS[rows.clone()].to_vec())),
                ValueColumn::F64(Float64Array::from(FLOATS[rows.clone()].to_vec())),
            ];
            // Numbers without a hole are added another way.
            let columns = if numbers(&columns[1..]).is_some() { &columns[1..] } else { &columns };
            reduction.add_block(&TIMES[rows.clone()], &[columns.to_vec()], &mut runs);
        }
        reduction.samples(Order::Ascending).next().unwrap()
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
