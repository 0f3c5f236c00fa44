//! The second pass: rows go to the device door, several hundred per request, each request acknowledged before the next.

use std::collections::{BTreeMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::plan::Plan;
use super::rows::{Row, Rows};
use crate::client::{Api, ApiError, escaped};
use crate::limits::{IMPORT_ATTEMPTS_MAX, IMPORT_BYTES, IMPORT_PAUSE, IMPORT_PAUSE_MAX, IMPORT_ROWS};

/// What was sent and acknowledged.
#[derive(Debug)]
pub(super) struct Sent {
    /// Acknowledged rows.
    pub rows: u64,
    /// Acknowledged values.
    pub values: u64,
    /// Acknowledged values with a time of their own, by key. What a later row of the same time replaced is not in it.
    pub by_key: BTreeMap<String, u64>,
    /// Rows whose time an earlier row had: their values were added to that row or replaced values of it.
    pub repeated_times: u64,
    /// Times of the earliest and the latest row, in milliseconds since 1970.
    pub first_ms: i64,
    pub last_ms: i64,
    /// Requests that had to be repeated.
    pub repetitions: u64,
    /// Time from the first request to the last acknowledgement.
    pub duration: Duration,
}

/// Sends all rows of a plan.
pub(super) fn upload(plan: &Plan, api: &Api, token: &str) -> anyhow::Result<Sent> {
    let path = format!("/api/v1/{}/telemetry", escaped(token));
    let mut upload = Upload {
        api,
        path,
        body: String::new(),
        rows_in_body: 0,
        bar: progress_bar(plan.rows()),
        times: HashSet::new(),
        sent: Sent {
            rows: 0,
            values: 0,
            by_key: BTreeMap::new(),
            repeated_times: 0,
            first_ms: i64::MAX,
            last_ms: i64::MIN,
            repetitions: 0,
            duration: Duration::ZERO,
        },
    };
    let began = Instant::now();
    let mut index = 0;
    for file in &plan.files {
        let keys: Vec<_> = file.columns.iter().map(|column| column.key.as_str()).collect();
        let mut rows = Rows::open(&file.path, plan.timing.column.as_deref(), &plan.timing.format)?;
        while let Some(row) = rows.next()? {
            let ts = row.time_ms.unwrap_or_else(|| plan.clock.at(index));
            index += 1;
            upload.push(ts, &row, &keys)?;
        }
        let changed = || format!("{} changed while it was imported; import it again", file.path.display());
        anyhow::ensure!(rows.cells == file.cells, changed());
    }
    upload.flush()?;
    upload.bar.finish_and_clear();
    upload.sent.duration = began.elapsed();
    Ok(upload.sent)
}

/// The ThingsBoard form with a time.
#[derive(Serialize)]
struct Timed<'a> {
    ts: i64,
    values: BTreeMap<&'a str, &'a serde_json::Value>,
}

struct Upload<'a> {
    api: &'a Api,
    path: String,
    body: String,
    rows_in_body: u64,
    bar: ProgressBar,
    /// Times from a column; rows that are laid out by us cannot repeat one.
    times: HashSet<i64>,
    sent: Sent,
}

impl Upload<'_> {
    fn push(&mut self, ts: i64, row: &Row, keys: &[&str]) -> anyhow::Result<()> {
        if row.values.is_empty() {
            self.bar.inc(1);
            return Ok(());
        }
        let values: BTreeMap<_, _> = row.values.iter().map(|(at, value)| (keys[*at], value)).collect();
        let is_new = row.time_ms.is_none() || self.times.insert(ts);
        for key in values.keys().filter(|_| is_new) {
            match self.sent.by_key.get_mut(*key) {
                Some(count) => *count += 1,
                None => drop(self.sent.by_key.insert((*key).to_owned(), 1)),
            }
        }
        self.sent.repeated_times += u64::from(!is_new);
        self.sent.values += values.len() as u64;
        self.sent.first_ms = self.sent.first_ms.min(ts);
        self.sent.last_ms = self.sent.last_ms.max(ts);
        let text = serde_json::to_string(&Timed { ts, values }).expect("BUG: numbers and text are JSON");
        if self.rows_in_body as usize >= IMPORT_ROWS || self.body.len() + text.len() > IMPORT_BYTES {
            self.flush()?;
        }
        self.body.push(if self.body.is_empty() { '[' } else { ',' });
        self.body.push_str(&text);
        self.rows_in_body += 1;
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if self.rows_in_body == 0 {
            return Ok(());
        }
        self.body.push(']');
        let done = self.sent.rows;
        self.post().with_context(|| format!("stopped after {done} acknowledged rows; importing again from the start is safe with the same --start"))?;
        self.sent.rows += self.rows_in_body;
        self.bar.inc(self.rows_in_body);
        self.rows_in_body = 0;
        self.body.clear();
        Ok(())
    }

    /// Sends the body until it is acknowledged. Repeating is safe: rows are known by their times.
    fn post(&mut self) -> Result<(), ApiError> {
        for attempt in 1.. {
            let error = match self.api.post_text(&self.path, &self.body) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let Some(pause) = pause_after(&error).filter(|_| attempt < IMPORT_ATTEMPTS_MAX) else {
                return Err(error);
            };
            self.bar.set_message(format!("waiting: {error}"));
            self.sent.repetitions += 1;
            thread::sleep(pause);
            self.bar.set_message("");
        }
        Ok(())
    }
}

/// How long to wait before the same request may succeed; `None` when it never will.
pub(crate) fn pause_after(error: &ApiError) -> Option<Duration> {
    match error {
        ApiError::Status { status: 429 | 503, retry_after, .. } => {
            Some(retry_after.unwrap_or(IMPORT_PAUSE).min(IMPORT_PAUSE_MAX))
        }
        ApiError::Transport { .. } => Some(IMPORT_PAUSE),
        ApiError::Status { .. } | ApiError::Answer { .. } => None,
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

    fn status(status: u16, retry_after: Option<u64>) -> ApiError {
        let retry_after = retry_after.map(Duration::from_secs);
        ApiError::Status { method: "POST", url: String::new(), status, message: String::new(), retry_after }
    }

    #[test]
    fn a_busy_server_is_waited_for_and_a_refusal_is_final() {
        assert_eq!(pause_after(&status(429, Some(2))), Some(Duration::from_secs(2)));
        assert_eq!(pause_after(&status(503, None)), Some(IMPORT_PAUSE));
        assert_eq!(pause_after(&status(503, Some(86_400))), Some(IMPORT_PAUSE_MAX));
        assert_eq!(pause_after(&status(400, Some(1))), None);
        assert_eq!(pause_after(&status(401, None)), None);
    }
}
