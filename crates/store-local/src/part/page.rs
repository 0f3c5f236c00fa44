//! Pages: the rows that are decoded at once and kept in the cache.
//!
//! A *page* here is the rows of one data page of the column `ts`, whatever pages the other columns of the part have.

use model::TimeRange;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use crate::chunk::Extent;

/// Rows that are decoded at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    pub(crate) group: u32,
    /// The first row of the page in the row group.
    pub(crate) start: u32,
    pub(crate) rows: u32,
    /// Smallest and largest series; the full range if the file does not have them.
    pub(crate) series: (u32, u32),
    pub(crate) ts: (i64, i64),
}

impl Page {
    /// Smallest and largest series and time.
    pub(crate) fn extent(&self) -> Extent {
        Extent { series: self.series, ts: self.ts }
    }

    /// Whether all of its rows are in a range.
    pub(crate) fn is_within(&self, range: &TimeRange) -> bool {
        range.start.micros() <= self.ts.0 && self.ts.1 < range.end.micros()
    }

    /// Whether some of its rows may be in a range.
    pub(crate) fn overlaps(&self, range: &TimeRange) -> bool {
        self.ts.0 < range.end.micros() && range.start.micros() <= self.ts.1
    }
}

/// All pages, in file order.
pub(super) fn pages(metadata: &ParquetMetaData, series: usize, ts: usize) -> Vec<Page> {
    let mut pages = Vec::new();
    for group in 0..metadata.num_row_groups() {
        let rows = metadata.row_group(group).num_rows() as u32;
        let statistics = |column: usize| {
            let index = metadata.column_index().and_then(|groups| groups.get(group)?.get(column));
            index.and_then(
                |index| if let ColumnIndexMetaData::INT64(index) = index { Some(index) } else { None },
            )
        };
        let starts = |column: usize| {
            let index = metadata.offset_index().and_then(|groups| groups.get(group)?.get(column));
            let pages = index.map(|index| index.page_locations().iter());
            pages.map(|pages| pages.map(|page| page.first_row_index as u32).collect::<Vec<_>>())
        };
        let page_starts = starts(ts).unwrap_or_else(|| vec![0]);
        for (page, start) in page_starts.iter().enumerate() {
            let end = page_starts.get(page + 1).copied().unwrap_or(rows);
            let bounds = |column: usize| {
                let index = statistics(column)?;
                // If the column has other page boundaries, its statistics belong to other rows.
                let same = column == ts || starts(column).as_ref() == Some(&page_starts);
                same.then_some(())?;
                Some((*index.min_value(page)?, *index.max_value(page)?))
            };
            let number = |number: i64| u32::try_from(number).ok();
            let series = bounds(series).and_then(|(min, max)| Some((number(min)?, number(max)?)));
            pages.push(Page {
                group: group as u32,
                start: *start,
                rows: end - start,
                series: series.unwrap_or((0, u32::MAX)),
                ts: bounds(ts).unwrap_or((i64::MIN, i64::MAX)),
            });
        }
    }
    // A search by series or table needs the bounds of all pages or none.
    if pages.iter().any(|page| page.series == (0, u32::MAX)) {
        pages.iter_mut().for_each(|page| page.series = (0, u32::MAX));
    }
    pages
}
