//! Exports a table as a file: reads batches of a snapshot and writes them one by one.

use std::io::Write;
use std::str::FromStr;

use model::limits::{EXPORT_BATCH_ROWS, EXPORT_ROW_GROUP_ROWS};
use model::{TableName, TimeRange};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use store::{BatchReader, ReadOrder, Store, TableColumns, TableRead, TagColumn, TagMatcher, TagPredicate};

use super::BulkError;
use super::csv::CsvWriter;

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// CSV. A cell without a value is empty, empty text is `""`, times are RFC 3339 in UTC. Integers and floats of a key share one
    /// column, each with its exact digits.
    Csv,
    /// Parquet with zstd. The schema has the role of each column, so an import needs no flags.
    Parquet,
}

impl FromStr for ExportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "csv" => Ok(Self::Csv),
            "parquet" => Ok(Self::Parquet),
            other => Err(format!("{other:?} is not a format; use csv or parquet")),
        }
    }
}

/// Which rows of a table an export writes, and in which format.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    /// Conditions on tags; an exported series satisfies all of them.
    pub matchers: Vec<TagMatcher>,
    /// Time range of the exported rows.
    pub range: TimeRange,
    /// Format of the file.
    pub format: ExportFormat,
}

/// A snapshot of a table, ready to be written.
pub struct Export {
    columns: TableColumns,
    readers: Vec<Box<dyn BatchReader>>,
    format: ExportFormat,
    rows_max: u64,
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Export").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Export {
    /// Takes a snapshot. It reads no rows yet.
    ///
    /// # Errors
    /// The table does not exist, or the store fails.
    pub fn begin(store: &dyn Store, table: &TableName, request: &ExportRequest) -> Result<Self, BulkError> {
        let snapshot = store.snapshot(table)?;
        let snapshot = snapshot.ok_or_else(|| BulkError::no_table(store, table))?;
        let columns = snapshot.columns().clone();
        for matcher in &request.matchers {
            check_tag(matcher, table.name(), &columns.tags)?;
        }
        let series = match request.matchers.is_empty() {
            true => None,
            false => Some(snapshot.select(&request.matchers)?),
        };
        let readers = snapshot.read(&TableRead {
            columns: (0..columns.schema().fields().len()).collect(),
            series,
            range: request.range,
            order: ReadOrder::SeriesThenTime,
            limit: None,
            batch_rows: EXPORT_BATCH_ROWS,
            readers_max: 1,
            tag_runs: false,
        })?;
        Ok(Self { columns, readers, format: request.format, rows_max: snapshot.rows_max() })
    }

    /// Upper bound of the number of rows.
    pub fn rows_max(&self) -> u64 {
        self.rows_max
    }

    /// Writes all rows and returns their number. It calls `progress` with the number so far.
    ///
    /// # Errors
    /// The errors of `out`, or a file of the store cannot be read.
    pub fn write(
        mut self,
        out: &mut (dyn Write + Send),
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, BulkError> {
        let mut rows = 0;
        match self.format {
            ExportFormat::Csv => {
                let mut writer = CsvWriter::begin(&mut *out, &self.columns)?;
                while let Some(batch) = next(&mut self.readers)? {
                    writer.batch(&batch)?;
                    rows += batch.num_rows() as u64;
                    progress(rows);
                }
                out.flush()?;
            }
            ExportFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .set_max_row_group_row_count(Some(EXPORT_ROW_GROUP_ROWS))
                    .build();
                let writer = ArrowWriter::try_new(&mut *out, self.columns.schema(), Some(properties));
                let mut writer = writer.map_err(parquet_error)?;
                while let Some(batch) = next(&mut self.readers)? {
                    writer.write(&batch).map_err(parquet_error)?;
                    rows += batch.num_rows() as u64;
                    progress(rows);
                }
                writer.close().map_err(parquet_error)?;
                out.flush()?;
            }
        }
        Ok(rows)
    }
}

/// Refuses a condition on an unknown tag: no row or every row would meet it.
pub(super) fn check_tag(matcher: &TagMatcher, table: &str, tags: &[TagColumn]) -> Result<(), BulkError> {
    if tags.iter().any(|tag| *tag.tag == *matcher.tag) {
        return Ok(());
    }
    let names: Vec<String> = tags.iter().map(|tag| format!("{:?}", tag.tag)).collect();
    let has =
        if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    Err(BulkError::Asked(format!("the table {table:?} has no tag {:?}; {has}", matcher.tag)))
}

/// The next batch of the first reader that has one.
fn next(readers: &mut Vec<Box<dyn BatchReader>>) -> Result<Option<arrow_array::RecordBatch>, BulkError> {
    while let Some(reader) = readers.first_mut() {
        match reader.next()? {
            Some(batch) => return Ok(Some(batch)),
            None => drop(readers.remove(0)),
        }
    }
    Ok(None)
}

fn parquet_error(error: ParquetError) -> BulkError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => BulkError::Write(*io),
            Err(inner) => BulkError::Data(inner.to_string()),
        },
        other => BulkError::Data(other.to_string()),
    }
}

/// Parses a condition on a tag: `tag=value`, `tag!=value`, `tag~pattern`, `tag!~pattern`.
///
/// # Errors
/// The fault in words.
pub fn parse_matcher(text: &str) -> Result<TagMatcher, String> {
    let wrong =
        || format!("{text:?} is not a condition; write tag=value, tag!=value, tag~pattern or tag!~pattern");
    let at = text.find(['=', '~']).filter(|at| *at > 0).ok_or_else(wrong)?;
    let (tag, negated) = match text[..at].strip_suffix('!') {
        Some(tag) => (tag, true),
        None => (&text[..at], false),
    };
    let value = &text[at + 1..];
    if tag.is_empty() {
        return Err(wrong());
    }
    let pattern = || regex::Regex::new(value).map_err(|error| format!("{value:?} is not a pattern: {error}"));
    let predicate = match (&text[at..=at], negated) {
        ("=", false) => TagPredicate::Is(value.to_owned()),
        ("=", true) => TagPredicate::IsNot(value.to_owned()),
        (_, false) => TagPredicate::Matches(pattern()?),
        (_, true) => TagPredicate::MatchesNot(pattern()?),
    };
    Ok(TagMatcher { tag: tag.to_owned(), predicate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_they_are_typed() {
        let parse =
            |text: &str| parse_matcher(text).map(|matcher| (matcher.tag, format!("{:?}", matcher.predicate)));
        assert_eq!(parse("device=truck 7"), Ok(("device".into(), "Is(\"truck 7\")".into())));
        assert_eq!(parse("device!=a=b"), Ok(("device".into(), "IsNot(\"a=b\")".into())));
        assert_eq!(parse("site="), Ok(("site".into(), "Is(\"\")".into())));
        assert!(parse("site~^no").unwrap().1.starts_with("Matches("));
        assert!(parse("site!~x").unwrap().1.starts_with("MatchesNot("));
        for wrong in ["", "site", "=x", "!=x", "site~("] {
            assert!(parse_matcher(wrong).is_err(), "{wrong:?}");
        }
    }
}
