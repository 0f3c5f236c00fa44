//! Reads Parquet files as Arrow batches. The options say how the column with the times is read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use arrow_array::builder::TimestampMicrosecondBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use hub::bulk::{Columns, ParquetBounds, ParquetRows, Zone};
use model::calendar::parse_local;
use store::table::{COLUMN_KIND, TS_COLUMN};

use crate::limits::IMPORT_HELD_BYTES_MAX;
use crate::time::{Time, TimeCounts, TimeError, TimeFormat, TimeReader, ts_type};

/// Limits on the unpacked size of a file.
const BOUNDS: ParquetBounds = ParquetBounds { held_bytes_max: IMPORT_HELD_BYTES_MAX, rows_max: u64::MAX };

/// An open file.
pub(super) struct ParquetFile {
    path: PathBuf,
    reader: ParquetRows<File>,
    schema: SchemaRef,
    /// Position and reader of the column with the times; `None` if the column has times already.
    times: Option<(usize, TimeReader)>,
    rows: u64,
    done: u64,
    /// Counts about the times.
    pub(super) counts: TimeCounts,
}

impl ParquetFile {
    /// Opens a file. `ts` names the column with the times; `format` and `zone` say how to read them.
    pub(super) fn open(
        path: &Path,
        ts: Option<&str>,
        format: Option<&TimeFormat>,
        zone: Option<&Zone>,
    ) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let reader =
            ParquetRows::open(file, BOUNDS).with_context(|| format!("{} cannot be read", path.display()))?;
        let rows = reader.rows();
        let schema = reader.schema().as_ref().clone();
        let times = time_column(&schema, ts).map(|index| {
            let field = schema.field(index);
            anyhow::Ok((index, time_reader(field, format, zone)?))
        });
        let times = times.transpose().with_context(|| format!("{}", path.display()))?;
        let times = times.and_then(|(index, reader)| Some((index, reader?)));
        let schema = match &times {
            Some((index, _)) => with_times(&schema, *index),
            None => schema,
        };
        Ok(Self {
            path: path.to_owned(),
            reader,
            schema: Arc::new(schema),
            times,
            rows,
            done: 0,
            counts: TimeCounts::default(),
        })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next rows; `None` after the last.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<RecordBatch>> {
        let reading = || format!("{} cannot be read", self.path.display());
        let Some(rows) = self.reader.next_rows().with_context(reading)? else { return Ok(None) };
        let first = self.done;
        self.done += rows.num_rows() as u64;
        let Some((index, times)) = self.times.clone() else { return Ok(Some(rows)) };
        let mut columns = rows.columns().to_vec();
        columns[index] = self.read_times(&columns[index], &times, first);
        Ok(Some(RecordBatch::try_new(Arc::new(with_times(rows.schema_ref(), index)), columns)?))
    }

    /// Approximate number of the file's bytes that are read.
    pub(super) fn position(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * u128::from(self.done) / u128::from(self.rows.max(1))) as u64
    }

    fn read_times(&mut self, column: &ArrayRef, times: &TimeReader, first: u64) -> ArrayRef {
        let mut read = TimestampMicrosecondBuilder::new().with_data_type(ts_type());
        for row in 0..column.len() {
            let place = || format!("row {}", first + row as u64 + 1);
            let time = (!column.is_null(row)).then(|| time(column.as_ref(), row, times));
            let time = time.and_then(|time| self.counts.count(time, place));
            read.append_option(time.map(|time| time.micros));
        }
        Arc::new(read.finish())
    }
}

fn time_column(schema: &Schema, ts: Option<&str>) -> Option<usize> {
    let is_time = |field: &Field| match ts {
        Some(ts) => field.name() == ts,
        None => field.name() == TS_COLUMN || field.metadata().get(COLUMN_KIND).is_some_and(|it| it == "ts"),
    };
    schema.fields().iter().position(|field| is_time(field))
}

fn with_times(schema: &Schema, index: usize) -> Schema {
    let field = |(at, field): (usize, &Arc<Field>)| match at == index {
        true => Arc::new(field.as_ref().clone().with_data_type(ts_type()).with_nullable(true)),
        false => Arc::clone(field),
    };
    Schema::new(schema.fields().iter().enumerate().map(field).collect::<Vec<_>>())
}

/// The reader for the times of a column; `None` if the column has times already.
fn time_reader(
    field: &Field,
    format: Option<&TimeFormat>,
    zone: Option<&Zone>,
) -> anyhow::Result<Option<TimeReader>> {
    let name = field.name();
    let has_zone = match field.data_type() {
        DataType::Timestamp(_, Some(_)) => true,
        DataType::Timestamp(_, None) | DataType::Date32 => false,
        DataType::Int64 | DataType::Float64 | DataType::Float32 => {
            let Some(format @ TimeFormat::Epoch(_)) = format else {
                bail!(
                    "the column {name:?} holds numbers; say with --ts-format whether they are s, ms, us or ns since 1970"
                );
            };
            ensure!(zone.is_none(), "the column {name:?} holds numbers since 1970 UTC; leave --timezone out");
            return Ok(Some(TimeReader { format: format.clone(), zone: None }));
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let format = format.cloned().unwrap_or(TimeFormat::Rfc3339);
            return Ok(Some(TimeReader { format, zone: zone.cloned() }));
        }
        other => bail!("the column {name:?} holds no times but {other}"),
    };
    ensure!(
        format.is_none(),
        "the column {name:?} holds times and no numbers or texts; leave --ts-format out"
    );
    if has_zone {
        ensure!(zone.is_none(), "the times of the column {name:?} have a zone; leave --timezone out");
        return Ok(None);
    }
    ensure!(
        zone.is_some(),
        "the times of the column {name:?} have no zone; say with --timezone where they were written (UTC, Europe/Berlin, +02:00)"
    );
    Ok(Some(TimeReader { format: TimeFormat::Rfc3339, zone: zone.cloned() }))
}

fn time(column: &dyn Array, row: usize, times: &TimeReader) -> Result<Time, TimeError> {
    match column.data_type() {
        DataType::Int64 => {
            let number = column.as_primitive::<Int64Type>().value(row);
            match &times.format {
                TimeFormat::Epoch(unit) => Ok(unit.time(number)?),
                _ => times.parse(&number.to_string()),
            }
        }
        // The shortest text of this number is probably the writer's text.
        DataType::Float64 => times.parse(&format!("{:?}", column.as_primitive::<Float64Type>().value(row))),
        DataType::Float32 => times.parse(&format!("{:?}", column.as_primitive::<Float32Type>().value(row))),
        DataType::Timestamp(..) | DataType::Date32 => {
            let text = Columns::text_of(column, row).unwrap_or_default();
            let shown = parse_local(&text).ok_or_else(|| format!("{text} is not a time of a calendar"))?;
            times.civil(shown)
        }
        _ => times.parse(&Columns::text_of(column, row).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::TimestampMicrosecondType;
    use arrow_array::{
        Date32Array, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray,
        TimestampNanosecondArray,
    };
    use arrow_schema::TimeUnit;
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::time::Unit;

    const MAY_1ST: i64 = 1_714_550_400;

    fn read(
        column: ArrayRef,
        format: Option<TimeFormat>,
        zone: Option<&str>,
    ) -> anyhow::Result<(Vec<Option<i64>>, ParquetFile)> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.parquet");
        let rows = RecordBatch::try_from_iter([("when", column)]).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let zone: Option<Zone> = zone.map(|zone| zone.parse().unwrap());
        let mut file = ParquetFile::open(&path, Some("when"), format.as_ref(), zone.as_ref())?;
        let rows = file.next()?.unwrap();
        assert_eq!(rows.schema(), *file.schema());
        let DataType::Timestamp(TimeUnit::Microsecond, Some(_)) = rows.column(0).data_type() else {
            bail!("no microseconds: {}", rows.column(0).data_type());
        };
        let times = rows.column(0).as_primitive::<TimestampMicrosecondType>().iter().collect();
        Ok((times, file))
    }

    #[test]
    fn the_options_determine_how_times_are_read() {
        let epoch = |unit| Some(TimeFormat::Epoch(unit));
        let cases: Vec<(ArrayRef, Option<TimeFormat>, Option<&str>)> = vec![
            (Arc::new(Int64Array::from(vec![MAY_1ST])), epoch(Unit::Seconds), None),
            (Arc::new(Int64Array::from(vec![MAY_1ST * 1_000])), epoch(Unit::Milliseconds), None),
            (Arc::new(Float64Array::from(vec![MAY_1ST as f64])), epoch(Unit::Seconds), None),
            (Arc::new(StringArray::from(vec!["2024-05-01T08:00:00Z"])), None, None),
            (Arc::new(StringArray::from(vec!["2024-05-01 10:00:00"])), None, Some("Europe/Berlin")),
            (Arc::new(TimestampMicrosecondArray::from(vec![MAY_1ST * 1_000_000])), None, Some("UTC")),
            (
                Arc::new(TimestampMicrosecondArray::from(vec![(MAY_1ST + 7_200) * 1_000_000])),
                None,
                Some("Europe/Berlin"),
            ),
            (Arc::new(Date32Array::from(vec![19_844])), None, Some("-08:00")),
        ];
        for (column, format, zone) in cases {
            let shown = format!("{:?} {zone:?}", column.data_type());
            let (times, _) = read(column, format, zone).unwrap_or_else(|error| panic!("{shown}: {error:#}"));
            assert_eq!(times, [Some(MAY_1ST * 1_000_000)], "{shown}");
        }
    }

    #[test]
    fn inapplicable_options_and_times_out_of_range_are_refused() {
        let naive = || Arc::new(TimestampMicrosecondArray::from(vec![1])) as ArrayRef;
        let zoned = || Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone("UTC")) as ArrayRef;
        let number = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        let seconds = || Some(TimeFormat::Epoch(Unit::Seconds));
        for (column, format, zone, expected) in [
            (naive(), None, None, "--timezone"),
            (naive(), seconds(), Some("UTC"), "leave --ts-format out"),
            (zoned(), seconds(), None, "leave --ts-format out"),
            (zoned(), None, Some("UTC"), "leave --timezone out"),
            (number(), None, None, "--ts-format"),
            (number(), Some(TimeFormat::Rfc3339), None, "--ts-format"),
            (number(), seconds(), Some("UTC"), "leave --timezone out"),
        ] {
            let shown = column.data_type().clone();
            let error = read(column, format, zone).map(|_| ()).unwrap_err();
            assert!(format!("{error:#}").contains(expected), "{shown}: {error:#}");
        }
    }

    #[test]
    fn invalid_and_too_fine_times_are_counted() {
        let texts = StringArray::from(vec![Some("noon"), None, Some("2024-05-01T08:00:00.0000001Z")]);
        let (times, file) = read(Arc::new(texts), None, None).unwrap();
        assert_eq!(times, [None, None, Some(MAY_1ST * 1_000_000)]);
        assert_eq!((file.counts.bad, file.counts.cut), (1, 1));
        assert!(file.counts.first_bad.unwrap().starts_with("row 1: \"noon\" is not a time"));
        let fine = TimestampNanosecondArray::from(vec![1_001]);
        assert_eq!(read(Arc::new(fine), None, Some("UTC")).unwrap().1.counts.cut, 1);
    }
}
