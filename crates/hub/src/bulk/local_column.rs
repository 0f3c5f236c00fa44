//! A column of local times in a file. It converts them to UTC by a time zone, and counts times without a unique moment.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::TimestampMicrosecondBuilder;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::BulkError;
use super::cells;
use super::counts::ImportCounts;
use super::zone::{LocalTimeError, Zone};

/// The column with the times of a file, without offsets.
pub(super) struct LocalColumn<'a> {
    index: usize,
    zone: &'a Zone,
    refused: u64,
    first_refused: Option<String>,
    chosen: u64,
    /// Times that cannot be represented, or are finer than microseconds.
    out_of_range: u64,
    cut: u64,
}

impl<'a> LocalColumn<'a> {
    /// `None` for a column of times with offsets.
    ///
    /// # Errors
    /// A zone is missing, or does not apply.
    pub(super) fn of(field: &Field, index: usize, zone: Option<&'a Zone>) -> Result<Option<Self>, BulkError> {
        let name = field.name();
        let is_local = matches!(field.data_type(), DataType::Timestamp(_, None));
        match (is_local, zone) {
            (true, Some(zone)) => Ok(Some(Self {
                index,
                zone,
                refused: 0,
                first_refused: None,
                chosen: 0,
                out_of_range: 0,
                cut: 0,
            })),
            (false, None) => Ok(None),
            (true, None) => Err(BulkError::Asked(format!(
                "the times of the column {name:?} have no zone; say where they were written (timezone=UTC, Europe/Berlin, +02:00)"
            ))),
            (false, Some(_)) => {
                let what = match field.data_type() {
                    DataType::Timestamp(..) => "the times of the column have a zone",
                    _ => "numbers are microseconds since 1970 UTC",
                };
                Err(BulkError::Asked(format!("timezone does not apply to {name:?}: {what}; leave it out")))
            }
        }
    }

    /// The batch with its times in UTC. A time without a unique moment becomes null.
    pub(super) fn in_utc(&mut self, rows: RecordBatch) -> Result<RecordBatch, BulkError> {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let column = rows.column(self.index);
        let mut times =
            TimestampMicrosecondBuilder::with_capacity(rows.num_rows()).with_data_type(utc.clone());
        for row in 0..rows.num_rows() {
            times.append_option(self.time(column.as_ref(), row));
        }
        let mut columns = rows.columns().to_vec();
        columns[self.index] = Arc::new(times.finish());
        let mut fields: Vec<_> = rows.schema_ref().fields().iter().cloned().collect();
        let field = fields[self.index].as_ref().clone();
        fields[self.index] = Arc::new(field.with_data_type(utc).with_nullable(true));
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|error| BulkError::Data(error.to_string()))
    }

    fn time(&mut self, column: &dyn arrow_array::Array, row: usize) -> Option<i64> {
        let Ok(shown) = cells::time(column, row) else {
            self.out_of_range += 1;
            return None;
        };
        let (shown, is_cut) = shown?;
        match self.zone.moment(shown.micros()) {
            Ok(moment) => {
                self.cut += u64::from(is_cut);
                self.chosen += u64::from(moment.is_chosen);
                Some(moment.micros)
            }
            Err(LocalTimeError::ClockChange(reason)) => {
                self.refused += 1;
                self.first_refused.get_or_insert(reason);
                None
            }
            Err(LocalTimeError::OutOfRange) => {
                self.out_of_range += 1;
                None
            }
        }
    }

    /// Adds the counts of this column. The importer has counted these rows as rows without a time.
    pub(super) fn tell(self, counts: &mut ImportCounts) {
        counts.without_time = counts.without_time.saturating_sub(self.refused + self.out_of_range);
        counts.time_out_of_range += self.out_of_range;
        counts.clock_changes += self.refused;
        counts.clock_changes_reason = self.first_refused;
        counts.chosen_times += self.chosen;
        counts.cut_times += self.cut;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arrow_array::{ArrayRef, Int64Array, TimestampMillisecondArray};
    use model::limits::IngestLimits;
    use parquet::arrow::ArrowWriter;
    use store::MemoryStore;

    use super::super::{ClockChange, ImportRules, ParquetBounds, import_parquet};
    use super::*;
    use crate::clock::system_now;

    /// 2024-10-27T02:30:00 as if it were UTC: clocks in Berlin show it twice.
    const TWICE_MS: i64 = 1_729_996_200_000;
    const HOUR_MS: i64 = 3_600_000;

    fn import(times: ArrayRef, zone: Option<Zone>) -> Result<ImportCounts, BulkError> {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..times.len() as i64));
        let rows = RecordBatch::try_from_iter([("ts", times), ("n", values)]).unwrap();
        let mut file = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        file.write(&rows).unwrap();
        let file = file.into_inner().unwrap();
        let rules = ImportRules::of(&IngestLimits::default(), system_now(), false);
        let bounds = ParquetBounds { held_bytes_max: 1024 * 1024, rows_max: 1_000 };
        import_parquet(
            &MemoryStore::new(),
            &store::conformance::table("t"),
            file.into(),
            bounds,
            zone.as_ref(),
            rules,
            Duration::ZERO,
        )
    }

    fn berlin(clock_change: ClockChange) -> Option<Zone> {
        Some("Europe/Berlin".parse::<Zone>().unwrap().with_clock_change(clock_change))
    }

    #[test]
    fn times_without_a_zone_are_read_in_the_given_zone() {
        let naive = || -> ArrayRef {
            Arc::new(TimestampMillisecondArray::from(vec![TWICE_MS - HOUR_MS, TWICE_MS, i64::MAX]))
        };
        let counts = import(naive(), berlin(ClockChange::Refuse)).unwrap();
        assert_eq!((counts.rows, counts.clock_changes, counts.without_time), (1, 1, 0));
        assert_eq!((counts.time_out_of_range, counts.skipped()), (1, 2));
        assert!(counts.clock_changes_reason.unwrap().contains("was twice in Europe/Berlin"));
        let counts = import(naive(), berlin(ClockChange::Later)).unwrap();
        assert_eq!((counts.rows, counts.chosen_times, counts.skipped()), (2, 1, 1));
    }

    #[test]
    fn a_zone_is_required_for_local_times_and_refused_for_others() {
        let naive: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![TWICE_MS]));
        let zoned: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![TWICE_MS]).with_timezone("UTC"));
        let number: ArrayRef = Arc::new(Int64Array::from(vec![TWICE_MS * 1_000]));
        for (times, zone, expected) in [
            (&naive, None, "timezone="),
            (&zoned, berlin(ClockChange::Refuse), "have a zone"),
            (&number, berlin(ClockChange::Refuse), "microseconds since 1970 UTC"),
        ] {
            let error = import(Arc::clone(times), zone).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(import(zoned, None).unwrap().rows, 1);
        assert_eq!(import(number, None).unwrap().rows, 1);
    }
}
