//! The destinations of imported rows: the store of a data directory, the bulk import of a running server, or nothing when an
//! import is only examined.

use std::time::Duration;

use anyhow::Context;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use clients::http::{RestClient, RestError, escaped};
use hub::bulk::{Columns, ImportCounts, Importer};
use parquet::arrow::ArrowWriter;
use serde_json::Value;

use crate::limits::{IMPORT_ATTEMPTS_MAX, IMPORT_PIECE_BYTES};
use crate::retry::pause_before_retry;

/// How long an import into a directory waits for a store that is busy with a flush.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(600);

/// Takes rows and counts them.
pub trait RowSink {
    /// Adds rows.
    fn rows(&mut self, rows: &RecordBatch) -> anyhow::Result<()>;
    /// Makes all rows since the last call durable, and returns their counts.
    fn sync(&mut self) -> anyhow::Result<ImportCounts>;
}

impl RowSink for Importer<'_> {
    fn rows(&mut self, rows: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.append(rows)?)
    }

    fn sync(&mut self) -> anyhow::Result<ImportCounts> {
        Ok(Importer::sync(self)?)
    }
}

/// Sends rows to a server as Parquet files, each acknowledged before the next.
pub struct ServerSink<'a> {
    api: &'a RestClient,
    path: String,
    columns: Columns,
    piece: Option<ArrowWriter<Vec<u8>>>,
    counts: ImportCounts,
}

impl<'a> ServerSink<'a> {
    /// Sends to a table. `any_time` accepts times that no device may send.
    pub fn new(api: &'a RestClient, table: &str, columns: Columns, any_time: bool) -> Self {
        let path = format!("/api/tacho/import?table={}&anyTime={any_time}", escaped(table));
        Self { api, path, columns, piece: None, counts: ImportCounts::default() }
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let Some(piece) = self.piece.take() else { return Ok(()) };
        let bytes = piece.into_inner()?;
        for attempt in 1.. {
            match self.api.post_for_stream(&self.path, &bytes) {
                Ok(mut answer) => {
                    let mut text = String::new();
                    std::io::Read::read_to_string(&mut answer.body, &mut text)?;
                    let counts = serde_json::from_str(&text).ok().and_then(|json| counts_of(&json));
                    self.counts.add(&counts.context("the server's answer is not understood")?);
                    return Ok(());
                }
                Err(error) => match pause_before_retry(&error).filter(|_| attempt < IMPORT_ATTEMPTS_MAX) {
                    Some(pause) => std::thread::sleep(pause),
                    None => return Err(refused(error)),
                },
            }
        }
        Ok(())
    }
}

fn refused(error: RestError) -> anyhow::Error {
    anyhow::Error::new(error).context("the server did not take the rows")
}

impl RowSink for ServerSink<'_> {
    fn rows(&mut self, rows: &RecordBatch) -> anyhow::Result<()> {
        let rows = self.columns.described(rows)?;
        for rows in pieces(&rows, IMPORT_PIECE_BYTES) {
            let piece = match &mut self.piece {
                Some(piece) => piece,
                none => none.insert(ArrowWriter::try_new(Vec::new(), rows.schema(), None)?),
            };
            piece.write(&rows)?;
            if piece.in_progress_size() + piece.bytes_written() >= IMPORT_PIECE_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> anyhow::Result<ImportCounts> {
        self.send()?;
        Ok(std::mem::take(&mut self.counts))
    }
}

/// Cuts a batch into pieces whose texts have at most `bytes_max` bytes. A text that a Parquet dictionary holds once may be in
/// every row, and counts for each.
fn pieces(rows: &RecordBatch, bytes_max: usize) -> Vec<RecordBatch> {
    let texts: Vec<_> = rows.columns().iter().filter_map(|column| column.as_string_view_opt()).collect();
    let bytes_of = |row: usize| texts.iter().map(|texts| texts.views()[row] as u32 as usize).sum::<usize>();
    let (mut pieces, mut first, mut bytes) = (Vec::new(), 0, 0);
    for row in 0..rows.num_rows() {
        let of_row = bytes_of(row);
        if row > first && bytes + of_row > bytes_max {
            pieces.push(rows.slice(first, row - first));
            (first, bytes) = (row, 0);
        }
        bytes += of_row;
    }
    pieces.push(rows.slice(first, rows.num_rows() - first));
    pieces
}

fn counts_of(json: &Value) -> Option<ImportCounts> {
    let number = |name: &str| json[name].as_u64();
    Some(ImportCounts {
        rows: number("rows")?,
        values: number("values")?,
        without_time: number("withoutTime")?,
        without_value: number("withoutValue")?,
        time_out_of_range: number("timeOutOfRange")?,
        implausible: number("implausible")?,
        first_implausible_us: json["firstImplausibleUs"].as_i64(),
        too_old: number("tooOld")?,
        bad_tags: number("badTags")?,
        bad_tags_reason: json["badTagsReason"].as_str().map(str::to_owned),
        too_large: number("tooLarge")?,
        too_long: number("tooLong")?,
        cut_times: number("cutTimes")?,
        rounded: number("rounded")?,
        // Counted where the file is read.
        bad_lines: 0,
        bad_lines_reason: None,
        clock_changes: 0,
        clock_changes_reason: None,
        chosen_times: 0,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringViewArray};

    use super::*;

    #[test]
    fn rows_are_cut_where_their_texts_are_long() {
        let texts = StringViewArray::from(vec!["a", "text that its view does not show", "", "b", "ccc"]);
        let rows = RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)]).unwrap();
        let cut = |bytes| pieces(&rows, bytes).iter().map(RecordBatch::num_rows).collect::<Vec<_>>();
        assert_eq!((cut(100), cut(33), cut(4)), (vec![5], vec![3, 2], vec![1, 1, 3]));
        assert_eq!(pieces(&rows.slice(0, 0), 4).len(), 1);
    }

    #[test]
    fn the_counts_of_a_server_are_read() {
        let mut answer = serde_json::json!({
            "rows": 1, "values": 2, "withoutTime": 3, "withoutValue": 4, "timeOutOfRange": 5, "implausible": 6,
            "firstImplausibleUs": 7, "tooOld": 8, "badTags": 9, "badTagsReason": "no", "tooLarge": 10, "tooLong": 11,
            "cutTimes": 12, "rounded": 13,
        });
        let counts = counts_of(&answer).unwrap();
        assert_eq!((counts.skipped(), counts.skipped_values()), (3 + 4 + 5 + 6 + 8 + 9, 21));
        assert_eq!((counts.cut_times, counts.rounded, counts.first_implausible_us), (12, 13, Some(7)));
        answer["rounded"] = Value::Null;
        assert_eq!(counts_of(&answer), None);
    }
}
