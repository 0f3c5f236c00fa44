//! Rows of a body in line protocol.

use std::cell::{OnceCell, RefCell};

use hub::points::Points;
use model::{Timestamp, ValueRef};
use wire::line::{Field, LineValue, Lines, Precision, RawLine, Series};

use super::fields::{TIME, check_fields, dropped_field, invalid_name};
use super::refused_lines::RefusedLines;

/// Adds the lines of a body from an offset on, until they fill a batch. Lines without a time have the time `now`. Refused lines are
/// kept as dead letters and named in the result. The number of a row's item is the offset of its line. Also returns the offset at
/// which to go on; `None` after the last line.
pub(super) fn collect(
    points: &mut Points,
    (body, from): (&[u8], usize),
    precision: Precision,
    now: Timestamp,
) -> (RefusedLines, Option<usize>) {
    let (mut lines, mut faults) = (Lines::starting_at(body, from), RefusedLines::default());
    loop {
        let position = lines.position();
        if points.is_full() {
            return (faults, Some(position).filter(|position| *position < body.len()));
        }
        let Some(line) = lines.next_line() else { return (faults, None) };
        let (at, text, reason) = match line {
            Ok(line) => match add(points, &line, precision, now) {
                Ok(()) => continue,
                Err(reason) => (line.at, line.text.as_bytes(), reason),
            },
            Err(bad) => (bad.at, bad.bytes, bad.error.to_string()),
        };
        let reason = faults.add(body, at, text, &reason);
        points.refuse(&reason, text);
    }
}

fn add(
    points: &mut Points,
    line: &RawLine<'_, '_>,
    precision: Precision,
    now: Timestamp,
) -> Result<(), String> {
    let ts = match line.time {
        None => now,
        Some(time) => Timestamp::from_micros(precision.micros(time).ok_or("time outside range")?),
    };
    check_fields(line)?;
    // A body is shorter than 4 GiB.
    let item = line.at as u32;
    let large: Vec<String> = line.fields.iter().filter_map(large).collect();
    let mut large = large.iter();
    let fields = line.fields.iter().filter(|(key, _)| key != TIME).map(|(key, value)| {
        let value = match value {
            LineValue::F64(value) => ValueRef::F64(*value),
            LineValue::I64(value) => ValueRef::I64(*value),
            LineValue::Bool(value) => ValueRef::Bool(*value),
            LineValue::Text(text) => ValueRef::String(text),
            LineValue::U64(value) => match i64::try_from(*value) {
                Ok(value) => ValueRef::I64(value),
                Err(_) => ValueRef::Json(large.next().map_or("", String::as_str)),
            },
        };
        (key.as_ref(), value)
    });
    add_row(points, item, ts, &line.series, fields)?;
    if let Some(reason) = dropped_field(line) {
        points.refuse(&reason, line.text.as_bytes());
    }
    Ok(())
}

/// The digits of an unsigned integer that no `i64` holds. The store keeps such numbers as JSON, with every digit.
fn large((key, value): &Field<'_>) -> Option<String> {
    match value {
        LineValue::U64(value) if key != TIME && i64::try_from(*value).is_err() => Some(value.to_string()),
        _ => None,
    }
}

fn add_row<'a>(
    points: &mut Points,
    item: u32,
    ts: Timestamp,
    series: &Series<'_>,
    fields: impl Iterator<Item = (&'a str, ValueRef<'a>)>,
) -> Result<(), String> {
    let names = OnceCell::new();
    let fault = RefCell::new(None);
    let key = || {
        let tags = series.sorted_tags();
        if tags.is_err() {
            fault.replace(Some("duplicate tags".to_owned()));
        }
        let (measurement, tags) = names.get_or_init(|| (series.measurement(), tags.unwrap_or_default()));
        if tags.iter().any(|(key, _)| key == TIME) {
            fault.replace(Some(invalid_name("tag key", "tag", measurement)));
        }
        // No table has an empty name, so a series with a fault is refused.
        let table = if fault.borrow().is_some() { "" } else { measurement.as_ref() };
        (table, tags.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect())
    };
    let added = points.add(item, ts, series.raw().as_bytes(), key, fields);
    added.map_err(|refusal| fault.take().unwrap_or_else(|| refusal.to_string()))
}
