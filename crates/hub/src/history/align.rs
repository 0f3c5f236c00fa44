//! Aligns the values of several keys by time: each time becomes a row.

use arrow_array::Float64Array;
use model::Timestamp;
use store::{Order, ValueColumn};

use super::block::number_of;
use super::sink::{History, RowSink, TimedValue};

/// Passes the values to the sink as rows: a row has the values of all keys with the same time.
pub(super) fn give_as_rows(history: &History, order: Order, sink: &mut impl RowSink) {
    let times = times_of(history, order);
    let columns: Option<Vec<Vec<ValueColumn>>> = history
        .iter()
        .map(|(_, timed_values)| Some(vec![ValueColumn::F64(numbers_at(&times, timed_values)?)]))
        .collect();
    let Some(columns) = columns else { return give_values(history, &times, sink) };
    // These are all rows, so a `Break` of the sink changes nothing.
    let _ = sink.rows(&times, &columns, 0..times.len());
}

/// The times of the values of all keys, each once, in the order of the values.
fn times_of(history: &History, order: Order) -> Vec<i64> {
    let mut times: Vec<i64> =
        history.iter().flat_map(|(_, timed_values)| timed_values.iter().map(|(ts, _)| ts.micros())).collect();
    if history.len() > 1 {
        times.sort_unstable();
        times.dedup();
        if order == Order::Descending {
            times.reverse();
        }
    }
    times
}

/// The values of a key as a column by the times of all keys; null at a time without a value. `None` if a value is not an
/// f64.
fn numbers_at(times: &[i64], timed_values: &[TimedValue]) -> Option<Float64Array> {
    if timed_values.len() == times.len() {
        let numbers: Option<Vec<f64>> = timed_values.iter().map(|(_, value)| number_of(value)).collect();
        return numbers.map(Float64Array::from);
    }
    let mut left = timed_values.iter().peekable();
    let at = |ts: &i64| match left.next_if(|(at, _)| at.micros() == *ts) {
        Some((_, value)) => number_of(value).map(Some),
        None => Some(None),
    };
    let numbers: Option<Vec<Option<f64>>> = times.iter().map(at).collect();
    numbers.map(Float64Array::from)
}

fn give_values(history: &History, times: &[i64], sink: &mut impl RowSink) {
    let mut left: Vec<_> = history.iter().map(|(_, timed_values)| timed_values.iter().peekable()).collect();
    let mut values = Vec::with_capacity(left.len());
    for ts in times {
        values.clear();
        values.extend(left.iter_mut().map(|timed_values| {
            timed_values.next_if(|(at, _)| at.micros() == *ts).map(|(_, value)| value.as_ref())
        }));
        if sink.row(Timestamp::from_micros(*ts), &values).is_break() {
            return;
        }
    }
}
