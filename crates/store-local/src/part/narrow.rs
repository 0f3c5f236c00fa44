//! The value columns of a narrow part.

use parquet::errors::Result;

use super::column::{ColumnBuilder, write_f64};
use super::encode::decimal::ScaleFinder;
use super::encode::numbers::{Column, Present};
use super::group::GroupWriter;
use super::schema::NARROW_VALUES;

/// Writes the value columns. In each row group the values of a table go to the column with the smallest scale that fits all
/// of them. So one table of ratios does not make a thousand tables of counters larger.
pub(crate) fn write_narrow_values(
    tables: &[(u32, usize)],
    of_rows: &ColumnBuilder,
    group: &mut GroupWriter<'_, '_>,
) -> Result<()> {
    let rows = tables.last().map_or(0, |table| table.1);
    let values = of_rows.doubles();
    let mut columns = vec![(Vec::new(), Vec::new()); NARROW_VALUES.len()];
    let mut with_value = of_rows.rows().peekable();
    let mut start = 0;
    for (_, end) in tables {
        // A row whose value was deleted has none.
        let present_rows = std::iter::from_fn(|| with_value.next_if(|row| (*row as usize) < *end));
        let present_rows: Vec<u32> = present_rows.collect();
        let of_table = &values[start..start + present_rows.len()];
        let mut scale = ScaleFinder::default();
        of_table.iter().for_each(|value| scale.add(*value));
        let fits = |of: &(&str, Option<u8>)| of.1.is_none_or(|of| scale.fits(of));
        let column = NARROW_VALUES.iter().position(fits).unwrap_or(NARROW_VALUES.len() - 1);
        let (present, chosen) = &mut columns[column];
        chosen.extend_from_slice(of_table);
        start += present_rows.len();
        present.extend(present_rows);
    }
    for ((present, values), (_, scale)) in columns.iter().zip(NARROW_VALUES) {
        let present = if values.len() == rows { Present::All } else { Present::Some(present) };
        write_f64(Column { values, rows, present }, scale, group)?;
    }
    Ok(())
}
