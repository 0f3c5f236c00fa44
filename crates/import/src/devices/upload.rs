//! The second pass with a device's token: sends rows to the device API, several hundred per request, each request
//! acknowledged before the next.

use std::collections::BTreeMap;
use std::thread;

use anyhow::Context;
use clients::http::{RestClient, RestError, escaped};
use hub::bulk::ImportCounts;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::plan::Plan;
use super::report;
use super::rows::{Row, Rows};
use crate::duplicate_rows::DuplicateRows;
use crate::limits::{IMPORT_ATTEMPTS_MAX, IMPORT_BYTES, IMPORT_ROWS};
use crate::outcome::FileOutcome;
use crate::retry::pause_before_retry;

/// The acknowledged rows.
#[derive(Debug)]
pub struct Sent {
    /// The outcome of each file.
    pub files: Vec<FileOutcome>,
    /// Requests that were repeated.
    pub repetitions: u64,
}

/// Sends all rows of a plan.
pub fn upload(plan: &Plan, api: &RestClient, token: &str) -> anyhow::Result<Sent> {
    let path = format!("/api/v1/{}/telemetry", escaped(token));
    let bar = progress_bar(plan.rows());
    let (body, counts) = (String::new(), ImportCounts::default());
    let mut upload = Upload { api, path, body, rows: 0, values: 0, bar, counts, done: 0, repetitions: 0 };
    let mut files = Vec::new();
    let mut index = 0;
    for file in &plan.files {
        let keys: Vec<_> = file.columns.iter().map(|column| column.key.as_str()).collect();
        let mut rows = Rows::open_again(&file.path, &plan.roles, &file.seen)?;
        let mut repeated = DuplicateRows::new(false);
        while let Some(row) = rows.next()? {
            let ts = row.time.map_or_else(|| plan.clock.at(index), |time| time.micros);
            index += 1;
            if row.values.is_empty() {
                continue;
            }
            repeated.row("", "", ts);
            upload.push(ts, &row, &keys)?;
        }
        let changed = || format!("{} changed while it was imported; import it again", file.path.display());
        anyhow::ensure!(rows.cells.rows == file.cells.rows, changed());
        upload.flush()?;
        let mut outcome = report::outcome(file, &rows);
        outcome.counts.add(&std::mem::take(&mut upload.counts));
        let (repeated, repeated_is_least) = (repeated.rows, repeated.is_least);
        files.push(FileOutcome { repeated, repeated_is_least, ..outcome });
    }
    upload.bar.finish_and_clear();
    Ok(Sent { files, repetitions: upload.repetitions })
}

/// Milliseconds since 1970, with decimal places where microseconds need them: three of them are exact in a double for
/// 200,000 years.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
enum Millis {
    Whole(i64),
    Finer(f64),
}

impl Millis {
    fn of(micros: i64) -> Self {
        match micros % 1_000 {
            0 => Self::Whole(micros / 1_000),
            _ => Self::Finer(micros as f64 / 1_000.0),
        }
    }
}

/// The ThingsBoard form with a time.
#[derive(Serialize)]
struct TimedRow<'a> {
    ts: Millis,
    values: BTreeMap<&'a str, &'a serde_json::Value>,
}

struct Upload<'a> {
    api: &'a RestClient,
    path: String,
    body: String,
    /// Rows and values in the body.
    rows: u64,
    values: u64,
    bar: ProgressBar,
    /// The counts of the current file.
    counts: ImportCounts,
    /// Acknowledged rows of all files.
    done: u64,
    repetitions: u64,
}

impl Upload<'_> {
    fn push(&mut self, ts_us: i64, row: &Row, keys: &[&str]) -> anyhow::Result<()> {
        let ts = Millis::of(ts_us);
        let values: BTreeMap<_, _> = row.values.iter().map(|(at, value)| (keys[*at], value)).collect();
        let count = values.len() as u64;
        let text = serde_json::to_string(&TimedRow { ts, values }).expect("BUG: numbers and text are JSON");
        if self.rows as usize >= IMPORT_ROWS || self.body.len() + text.len() > IMPORT_BYTES {
            self.flush()?;
        }
        self.body.push(if self.body.is_empty() { '[' } else { ',' });
        self.body.push_str(&text);
        self.rows += 1;
        self.values += count;
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.body.push(']');
        let done = self.done;
        self.post().with_context(|| format!("stopped after {done} acknowledged rows; importing again from the start is safe with the same --start"))?;
        self.counts.rows += self.rows;
        self.counts.values += self.values;
        self.done += self.rows;
        self.bar.inc(self.rows);
        (self.rows, self.values) = (0, 0);
        self.body.clear();
        Ok(())
    }

    /// Sends the body until it is acknowledged. Repeating is safe, because a row is identified by its time.
    fn post(&mut self) -> Result<(), RestError> {
        for attempt in 1.. {
            let error = match self.api.post_text(&self.path, &self.body) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let Some(pause) = pause_before_retry(&error).filter(|_| attempt < IMPORT_ATTEMPTS_MAX) else {
                return Err(error);
            };
            self.bar.set_message(format!("waiting: {error}"));
            self.repetitions += 1;
            thread::sleep(pause);
            self.bar.set_message("");
        }
        Ok(())
    }
}

/// A bar on a terminal, nothing elsewhere.
fn progress_bar(rows: u64) -> ProgressBar {
    let bar = ProgressBar::new(rows);
    let style =
        ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} rows  {per_sec}  {eta} left  {msg}");
    bar.set_style(style.expect("BUG: the template is constant and correct"));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_necessary_decimal_places() {
        let text = |micros| serde_json::to_string(&Millis::of(micros)).unwrap();
        assert_eq!(text(1_714_550_400_500_000), "1714550400500");
        assert_eq!(text(1_714_550_400_500_400), "1714550400500.4");
        assert_eq!(text(1_714_550_400_000_001), "1714550400000.001");
        assert_eq!(text(1_714_550_399_999_999), "1714550399999.999");
    }
}
