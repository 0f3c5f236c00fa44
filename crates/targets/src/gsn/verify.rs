//! Comparison of a phase with the server.

use std::collections::BTreeMap;

use clients::http::{HttpAnswer, HttpClient, escaped};
use load::engine::SegmentOutcome;
use load::result::Check;
use load::{Error, Result};

use super::streams::Streams;
use super::tally::RowsSeen;
use crate::driver::Verdict;

/// The rows of the sensors after a phase, and how the answers compare with them.
#[derive(Debug, Default)]
pub(super) struct Stored {
    rows: BTreeMap<usize, u64>,
    compared: u64,
    right: u64,
    fault: Option<String>,
}

impl Stored {
    /// The rows of a sensor, which `count` asks for once.
    pub(super) fn rows(&mut self, sensor: usize, count: impl FnOnce() -> Result<u64>) -> Result<u64> {
        if let Some(rows) = self.rows.get(&sensor) {
            return Ok(*rows);
        }
        let rows = count()?;
        self.rows.insert(sensor, rows);
        Ok(rows)
    }

    /// Compares the answers to equal questions with the rows of the sensor afterwards.
    pub(super) fn compare(&mut self, (name, wanted): (&str, u64), seen: RowsSeen, after: u64, growing: bool) {
        let expected = wanted.min(after);
        let is_right = match growing {
            true => seen.most <= expected,
            false => seen.least == expected && seen.most == expected,
        };
        self.compared += 1;
        self.right += u64::from(is_right);
        if !is_right && self.fault.is_none() {
            self.fault = Some(format!(
                "{name}: answers for {wanted} rows had {} to {} rows, and afterwards the sensor has {expected} of them. If it gets rows during the \
                 run, set dataset.growing=true.",
                seen.least, seen.most
            ));
        }
    }

    /// Counts a question that could not be compared.
    pub(super) fn unanswered(&mut self, error: &Error) {
        self.compared += 1;
        self.fault.get_or_insert_with(|| format!("An answer after the phase, to compare with: {error}"));
    }

    pub(super) fn check(&self, phase: &str) -> Check {
        Check::equal(
            format!("{phase}: questions whose answers have the right number of rows"),
            self.compared,
            self.right,
        )
    }

    /// The first wrong answer.
    pub(super) fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }
}

/// The sentence about the rows that a phase has written.
pub(super) fn written(phase: &str, streams: &Streams, rows: u64, segments: &[SegmentOutcome]) -> String {
    let seconds: f64 = segments.iter().map(|segment| segment.measured.as_secs_f64()).sum();
    let (count, fields) = (streams.count, streams.fields);
    format!(
        "{phase}: {rows} rows of {fields} fields were acknowledged for {count} sensors: {:.0} elements/s.",
        rows as f64 / seconds.max(1e-9)
    )
}

/// Reads all rows of all streams, and compares each value.
pub(super) fn uploads(phase: &str, http: &HttpClient, streams: &Streams, written: &[u64]) -> Result<Verdict> {
    let (mut found, mut right) = (0, 0);
    for (stream, rows) in (0_u64..).zip(written) {
        let (all, equal) = rows_of(http, streams, stream, *rows)?;
        found += all;
        right += equal;
    }
    let expected: u64 = written.iter().sum();
    let checks = vec![
        Check::equal(format!("{phase}: rows of all sensors"), expected, found),
        Check::equal(format!("{phase}: rows with the values that were written"), expected, right),
    ];
    Ok(Verdict { checks, ..Verdict::default() })
}

/// The number of rows of a stream in the range of its first `rows` rows, and how many of them are right.
fn rows_of(http: &HttpClient, streams: &Streams, stream: u64, rows: u64) -> Result<(u64, u64)> {
    if rows == 0 {
        return Ok((0, 0));
    }
    let name = streams.name(stream);
    // Both ends are outside of the range.
    let (from, to) = (iso(streams.millis(0) - 1), iso(streams.millis(rows)));
    let path = format!(
        "/api/sensors/{}/data?from={}&to={}&format=csv&timeFormat=unixTime",
        escaped(&name),
        escaped(&from),
        escaped(&to)
    );
    let answer = http.get(&path).and_then(HttpAnswer::success);
    let answer = answer.map_err(|error| Error::Answer(error.to_string()))?;
    let (mut found, mut right) = (0, 0);
    for line in answer.text().lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        right += u64::from(is_right(streams, stream, rows, line));
        found += 1;
    }
    Ok((found, right))
}

fn is_right(streams: &Streams, stream: u64, rows: u64, line: &str) -> bool {
    let mut values = line.split(',');
    let Some(millis) = values.next().and_then(|text| text.parse::<i64>().ok()) else { return false };
    let Ok(row) = u64::try_from(millis - streams.start_ms) else { return false };
    let is_equal = |field: u32| {
        let value = values.next().and_then(|text| text.parse::<f64>().ok());
        value == Some(Streams::value(stream, row, field))
    };
    row < rows && streams.millis(row) == millis && (0..streams.fields).all(is_equal)
}

/// A time as `2026-11-27T20:15:30.125`.
fn iso(millis: i64) -> String {
    let time = model::Timestamp::from_millis(millis).unwrap_or(model::Timestamp::MAX);
    let (date, of_day) = (time.date(), millis.rem_euclid(86_400_000));
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}",
        date.year,
        date.month,
        date.day,
        of_day / 3_600_000,
        of_day / 60_000 % 60,
        of_day / 1_000 % 60,
        of_day % 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_must_have_the_rows_that_are_there() {
        let mut stored = Stored::default();
        let seen = |least, most| RowsSeen { least, most };
        stored.compare(("a", 100), seen(100, 100), 500, false);
        stored.compare(("a", 1_000), seen(500, 500), 500, false);
        stored.compare(("a", 1_000), seen(400, 500), 500, true);
        assert!(stored.fault().is_none());
        stored.compare(("a", 1_000), seen(499, 500), 500, false);
        stored.compare(("a", 1_000), seen(400, 501), 500, true);
        assert!(!stored.check("p").passed);
        assert!(stored.fault().unwrap().contains("499 to 500"));
    }

    #[test]
    fn times_are_those_of_iso_8601() {
        assert_eq!(iso(1_795_810_530_125), "2026-11-27T20:15:30.125");
    }

    #[test]
    fn each_value_of_a_row_is_compared() {
        let streams = Streams { count: 3, fields: 2, prefix: "s".to_owned(), start_ms: 1_000 };
        let row = |values: &str| is_right(&streams, 1, 5, values);
        assert!(row("1001,0.48,1.49"));
        assert!(!row("1001,0.48,1.48") && !row("1001,0.48") && !row("1005,0.48,1.49") && !row("x,0.48,1.49"));
    }
}
