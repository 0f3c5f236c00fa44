//! Decodes columns of a part to values row by row, for merges.

use std::ops::Range;

use model::FieldType;
use model::limits::PART_WINDOW_ROWS;
use parquet::column::reader::{get_column_reader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::statistics::Statistics;
use store::StoreError;

use super::encode::decimal::{ScaleFinder, value_of};
use super::read::PartReader;
use super::values::{Typed, Values};

impl PartReader {
    /// The series and the times of some rows.
    pub(super) fn keys(&self, group: usize, rows: &Range<usize>) -> Result<(Vec<i64>, Vec<i64>), StoreError> {
        Ok((self.numbers(self.series, group, rows)?, self.numbers(self.ts, group, rows)?))
    }

    fn numbers(&self, column: usize, group: usize, rows: &Range<usize>) -> Result<Vec<i64>, StoreError> {
        let mut numbers = Vec::with_capacity(rows.len());
        self.read_typed::<Int64Type>(column, group, rows, None, &mut numbers)?;
        match numbers.len() == rows.len() {
            true => Ok(numbers),
            false => Err(self.file.corrupt(0, "an internal column has too few values".to_owned())),
        }
    }

    /// Searches a scale at which the f64 of a column, together with those of other columns, are decimals. This reads no
    /// decimals. It reads doubles until one fits at no scale.
    pub(crate) fn find_scale(&self, column: usize, finder: &mut ScaleFinder) -> Result<(), StoreError> {
        for group in 0..self.metadata().num_row_groups() {
            if let Some(scale) = self.scales[column] {
                let (min, max) = self.extremes(group, column).unwrap_or_default();
                finder.add_column(scale, value_of(min, scale).abs().max(value_of(max, scale).abs()));
                continue;
            }
            let rows = self.rows_of_group(group).unwrap_or(0);
            for start in (0..rows).step_by(PART_WINDOW_ROWS) {
                if finder.is_impossible() {
                    return Ok(());
                }
                let rows = start..rows.min(start + PART_WINDOW_ROWS);
                let values = self.decode(column, FieldType::F64, group, &rows)?;
                values.doubles().iter().for_each(|value| finder.add(*value));
            }
        }
        Ok(())
    }

    /// The values of a column in some rows.
    pub(super) fn decode(
        &self,
        column: usize,
        field_type: FieldType,
        group: usize,
        rows: &Range<usize>,
    ) -> Result<Values, StoreError> {
        let mut levels = Vec::with_capacity(rows.len());
        let typed = match field_type {
            FieldType::Bool => {
                let mut values = Vec::new();
                self.read_typed::<BoolType>(column, group, rows, Some(&mut levels), &mut values)?;
                Typed::Bool(values)
            }
            FieldType::I64 => {
                let mut values = Vec::with_capacity(rows.len());
                self.read_typed::<Int64Type>(column, group, rows, Some(&mut levels), &mut values)?;
                Typed::I64(values)
            }
            FieldType::F64 => match self.scales[column] {
                Some(scale) => {
                    let mut integers = Vec::with_capacity(rows.len());
                    self.read_typed::<Int64Type>(column, group, rows, Some(&mut levels), &mut integers)?;
                    Typed::F64(integers.iter().map(|integer| value_of(*integer, scale)).collect())
                }
                None => {
                    let mut values = Vec::with_capacity(rows.len());
                    self.read_typed::<DoubleType>(column, group, rows, Some(&mut levels), &mut values)?;
                    Typed::F64(values)
                }
            },
            FieldType::String | FieldType::Json => {
                let mut values = Vec::new();
                self.read_typed::<ByteArrayType>(column, group, rows, Some(&mut levels), &mut values)?;
                if values.iter().any(|value: &ByteArray| std::str::from_utf8(value.data()).is_err()) {
                    return Err(self
                        .file
                        .corrupt(0, "a text column holds bytes that are not UTF-8".to_owned()));
                }
                Typed::Text(values, field_type)
            }
        };
        Ok(Values::new(typed, &levels))
    }

    fn read_typed<T: DataType + 'static>(
        &self,
        column: usize,
        group: usize,
        rows: &Range<usize>,
        levels: Option<&mut Vec<i16>>,
        values: &mut Vec<T::T>,
    ) -> Result<(), StoreError> {
        let read = || -> Result<(), ParquetError> {
            let descriptor = self.metadata().row_group(group).column(column).column_descr_ptr();
            let reader = get_column_reader(descriptor, self.column_pages(column, group)?);
            let mut reader = get_typed_column_reader::<T>(reader);
            reader.skip_records(rows.start)?;
            // A call of the reader may end at the end of a page.
            let mut left = rows.len();
            let mut levels = levels;
            while left > 0 {
                let (records, ..) = reader.read_records(left, levels.as_deref_mut(), None, values)?;
                if records == 0 {
                    return Err(ParquetError::General("a column ends early".to_owned()));
                }
                left -= records;
            }
            Ok(())
        };
        read().map_err(|error| self.file.error(&error))
    }

    /// Smallest and largest number of a column of a row group.
    fn extremes(&self, group: usize, column: usize) -> Option<(i64, i64)> {
        match self.metadata().row_group(group).column(column).statistics()? {
            Statistics::Int64(statistics) => Some((*statistics.min_opt()?, *statistics.max_opt()?)),
            _ => None,
        }
    }
}
