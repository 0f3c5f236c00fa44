//! The wrapper `csv`: a file is followed, and each of its lines is an element.
//!
//! Invariants:
//! 1. The stored place moves only after the rows of the lines before it are durable.
//! 2. A line that is read again gives the row that it gave before: it has the same time, or its number states that it is stored already.
//! 3. A line that cannot be read changes nothing about the lines after it.

mod file_position;
mod line;
mod tail;
mod values;

use std::time::{Duration, Instant};

use model::{Timestamp, ValueRef};
use tokio::time::sleep;
use virtual_sensors::CsvFile;

use super::blocking::blocking;
use super::failure::Failure;
use super::sink::ElementSink;
use super::tie_order::ElementTimes;
use crate::limits::{CSV_LINE_BYTES_MAX, PLACE_INTERVAL};
use file_position::FilePosition;
use tail::{Chunk, FileTail};
use values::{Columns, Decoded};

pub(super) use line::split;

/// The field with the number of a line in a file without times.
const LINE_FIELD: &str = "csv_line";

/// Follows a file until it cannot be read.
pub(super) async fn read(file: &CsvFile, sink: &mut ElementSink) -> Result<(), Failure> {
    let mut reader = Reader::open(file, sink).await?;
    sink.connected();
    loop {
        let chunk = reader.chunk().await?;
        if chunk.is_new_file {
            reader.begin_again(sink).await?;
        }
        if chunk.lines.is_empty() {
            reader.keep_place(sink, true).await?;
            sink.report();
            sleep(Duration::from_millis(file.sampling_ms)).await;
            continue;
        }
        reader.take(&chunk.lines, sink).await?;
        reader.keep_place(sink, false).await?;
    }
}

/// A file that is read.
struct Reader {
    columns: Columns,
    skip_first_lines: u64,
    has_times: bool,
    /// `None` while a thread reads.
    tail: Option<FileTail>,
    place: FilePosition,
    places: ElementTimes,
    /// Lines up to this number are stored already, although the place does not say so.
    stored_line: u64,
    /// Whether the next bytes belong to a line that was refused for its length.
    is_in_long_line: bool,
    kept: FilePosition,
    kept_at: Instant,
}

impl Reader {
    async fn open(file: &CsvFile, sink: &mut ElementSink) -> Result<Self, Failure> {
        let columns = Columns::of(file).map_err(Failure::new)?;
        let has_times = file.has_times();
        let stored = sink.stored_place().await?.and_then(|bytes| FilePosition::decode(&bytes));
        let known = stored.filter(|place| place.file == file.file);
        let place = known.clone().unwrap_or_else(|| FilePosition::beginning(&file.file));
        let path = file.file.clone();
        let begin = place.clone();
        let tail = blocking(move || FileTail::open(&path, &begin)).await?;
        // Another file may have the name.
        let place = if tail.offset() == place.offset { place } else { place.of_new_file(0) };
        let places = place.last.map_or_else(ElementTimes::default, |(ms, at)| ElementTimes::after(ms, at));
        let kept = known.unwrap_or_else(|| FilePosition { offset: u64::MAX, ..place.clone() });
        let mut reader = Self {
            columns,
            skip_first_lines: file.skip_first_lines,
            has_times,
            tail: Some(tail),
            place,
            places,
            stored_line: 0,
            is_in_long_line: false,
            kept,
            kept_at: Instant::now(),
        };
        if !reader.has_times {
            if reader.place.since_us == 0 {
                reader.begin_again(sink).await?;
            }
            reader.find_stored_line(sink).await?;
        }
        Ok(reader)
    }

    /// A file without times tells by the newest row which of its lines are stored.
    async fn find_stored_line(&mut self, sink: &mut ElementSink) -> Result<(), Failure> {
        if let Some((ts, model::Value::I64(line))) = sink.newest(LINE_FIELD).await?
            && ts.micros() >= self.place.since_us
        {
            self.stored_line = u64::try_from(line).unwrap_or(0);
        }
        Ok(())
    }

    /// Reads another file, or the same one from its beginning.
    async fn begin_again(&mut self, sink: &mut ElementSink) -> Result<(), Failure> {
        // Rows of the file before have earlier times.
        self.place = self.place.of_new_file(sink.hub().receipt_time().micros());
        (self.stored_line, self.is_in_long_line) = (0, false);
        self.keep_place(sink, true).await
    }

    async fn chunk(&mut self) -> Result<Chunk, Failure> {
        let Some(mut tail) = self.tail.take() else {
            return Err(Failure::new("the file is not open"));
        };
        let (tail, chunk) = blocking(move || tail.next_lines().map(|chunk| (tail, chunk))).await?;
        self.tail = Some(tail);
        Ok(chunk)
    }

    /// Stores complete lines.
    async fn take(&mut self, lines: &[u8], sink: &mut ElementSink) -> Result<(), Failure> {
        let mut begin = 0;
        let mut after = self.place.clone();
        let mut at = 0;
        for text in lines.split_inclusive(|byte| *byte == b'\n') {
            self.line(text, after.line + 1, sink);
            at += text.len();
            after.line += 1;
            after.offset += text.len() as u64;
            if sink.is_full() {
                sink.store(&lines[begin..at]).await?;
                begin = at;
                self.advance(&after);
            }
        }
        sink.store(&lines[begin..]).await?;
        self.advance(&after);
        Ok(())
    }

    fn line(&mut self, text: &[u8], number: u64, sink: &mut ElementSink) {
        let is_ended = text.ends_with(b"\n");
        if std::mem::replace(&mut self.is_in_long_line, !is_ended && text.len() > CSV_LINE_BYTES_MAX) {
            self.is_in_long_line = !is_ended;
            return;
        }
        if number <= self.skip_first_lines || number <= self.stored_line {
            return;
        }
        let text = line::trimmed(text, number == 1);
        if text.is_empty() {
            return;
        }
        let read = match text.len() {
            bytes if bytes > CSV_LINE_BYTES_MAX => {
                Err(format!("the line has more than {CSV_LINE_BYTES_MAX} bytes (CSV_LINE_BYTES_MAX)"))
            }
            _ => self.element(text, number, sink),
        };
        if let Err(reason) = read {
            sink.refuse(&format!("{}, line {number}: {reason}", self.place.file), text);
        }
    }

    fn element(&mut self, text: &[u8], number: u64, sink: &mut ElementSink) -> Result<(), String> {
        let Decoded { timed, values } = self.columns.decode(text)?;
        let values = values.iter().map(|(name, value)| (*name, value.as_ref()));
        if self.has_times {
            let ms = timed.ok_or("the line has no time")?;
            let before = self.places;
            let added = sink.element(self.places.next(ms)?, values);
            if added.is_err() {
                self.places = before;
            }
            return added;
        }
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let mut values = values.peekable();
        if values.peek().is_none() {
            return Err("no field has a value".to_owned());
        }
        let ts: Timestamp = sink.hub().receipt_time();
        sink.element(ts, values.chain([(LINE_FIELD, ValueRef::I64(number))]))
    }

    /// The rows up to here are durable.
    fn advance(&mut self, to: &FilePosition) {
        (self.place.line, self.place.offset) = (to.line, to.offset);
        self.place.last = self.places.last();
    }

    /// Stores the place, if it has moved and some time has passed or it is `now`.
    async fn keep_place(&mut self, sink: &mut ElementSink, now: bool) -> Result<(), Failure> {
        if let Some(tail) = &self.tail {
            self.place.head = tail.head_until(self.place.offset);
        }
        if self.place == self.kept || (!now && self.kept_at.elapsed() < PLACE_INTERVAL) {
            return Ok(());
        }
        sink.keep_place(self.place.encode()).await?;
        self.kept = self.place.clone();
        self.kept_at = Instant::now();
        Ok(())
    }
}
