//! The value columns of a narrow part.

use parquet::errors::{ParquetError, Result};

use super::column::write_f64;
use super::encode::decimal::ScaleFinder;
use super::encode::numbers::{Column, Present};
use super::group::GroupWriter;
use super::schema::NARROW_VALUES;

/// Writes the value columns. In each row group the values of a table go to the column with the smallest scale that fits all
/// of them. So one table of ratios does not make a thousand tables of counters larger.
pub(crate) fn write_narrow_values(
    tables: &[(u32, usize)],
    values: &[f64],
    group: &mut GroupWriter<'_, '_>,
) -> Result<()> {
    let rows = tables.last().map_or(0, |table| table.1);
    if values.len() != rows {
        return Err(ParquetError::General("BUG: a row of a narrow part without a value".to_owned()));
    }
    let mut columns = vec![(Vec::new(), Vec::new()); NARROW_VALUES.len()];
    let mut start = 0;
    for (_, end) in tables {
        let mut scale = ScaleFinder::default();
        values[start..*end].iter().for_each(|value| scale.add(*value));
        let fits = |of: &(&str, Option<u8>)| of.1.is_none_or(|of| scale.fits(of));
        let column = NARROW_VALUES.iter().position(fits).unwrap_or(NARROW_VALUES.len() - 1);
        let (present, chosen) = &mut columns[column];
        present.extend(start as u32..*end as u32);
        chosen.extend_from_slice(&values[start..*end]);
        start = *end;
    }
    for ((present, values), (_, scale)) in columns.iter().zip(NARROW_VALUES) {
        let present = if values.len() == rows { Present::All } else { Present::Some(present) };
        write_f64(Column { values, rows, present }, scale, group)?;
    }
    Ok(())
}
