//! Computes from the headers of pages how many rows of a row group can be unpacked at once within a bound.

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::ChunkReader;

use super::header::{self, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, PageHeader};

/// Longest header of a page. Its statistics may contain two values.
const HEADER_BYTES_MAX: u64 = 1024 * 1024;
/// Length of most headers.
const HEADER_BYTES: u64 = 4 * 1024;
/// Bytes of the view of an unpacked text.
const VIEW_BYTES: u64 = 16;
/// Bytes of the lengths of a text in a delta encoding: its own length, and that of the common prefix.
const LENGTH_BYTES: u64 = 8;

/// The fault of a row group, in words.
pub(super) type Problem = String;

/// The pages of one column in a row group.
#[derive(Debug, Default)]
pub(super) struct Pages {
    dictionary_bytes: u64,
    /// Bytes of the lengths of the page with most of them. One page is unpacked at a time.
    lengths_bytes: u64,
    /// Bytes, rows, and whether each row may unpack to as many bytes as the page has.
    data: Vec<(u64, u64, bool)>,
    /// Whether there are texts with delta-encoded lengths.
    pub(super) has_lengths: bool,
}

/// The largest number of rows, up to `rows_max`, for which all columns together unpack to at most `bytes_max`; `None` if one row
/// is too large.
pub(super) fn rows_at_once(columns: &[Pages], rows_max: usize, bytes_max: u64) -> Option<usize> {
    let mut rows = rows_max;
    loop {
        let held = columns.iter().fold(0_u64, |held, pages| held.saturating_add(pages.held(rows as u64)));
        if held <= bytes_max {
            return Some(rows);
        }
        if rows == 1 {
            return None;
        }
        rows /= 2;
    }
}

impl Pages {
    /// The largest unpacked size of any run of `rows` rows.
    fn held(&self, rows: u64) -> u64 {
        let unfolded = |&(bytes, in_page, folded): &(u64, u64, bool)| match folded {
            true => bytes * rows.min(in_page).max(1),
            false => bytes,
        };
        // A window of `rows` rows contains all its pages whole except the first and the last, so the whole ones have fewer rows.
        let (mut first, mut bytes, mut largest, mut between) = (0, 0_u64, 0, 0_u64);
        // The size of a page has 31 bits and callers request few rows, so sums do not overflow.
        for (last, page) in self.data.iter().enumerate() {
            bytes += unfolded(page);
            if last > first + 1 {
                between += self.data[last - 1].1;
            }
            while first < last && between + 2 > rows {
                bytes -= unfolded(&self.data[first]);
                first += 1;
                between = if first < last { between - self.data[first].1.min(between) } else { 0 };
            }
            largest = largest.max(bytes);
        }
        self.dictionary_bytes.saturating_add(self.lengths_bytes).saturating_add(largest)
    }

    fn add(&mut self, header: &PageHeader, rows_left: u64) -> Result<(), Problem> {
        if !header.is_dictionary {
            let folded = header.encoding == DELTA_BYTE_ARRAY;
            let has_lengths = folded || header.encoding == DELTA_LENGTH_BYTE_ARRAY;
            let lengths = if has_lengths { header.values.saturating_mul(LENGTH_BYTES) } else { 0 };
            self.has_lengths |= has_lengths;
            self.lengths_bytes = self.lengths_bytes.max(lengths);
            self.data.push((header.unpacked_bytes, header.values.min(rows_left), folded));
            return Ok(());
        }
        if header.values > header.unpacked_bytes {
            return Err("a dictionary names more values than it has bytes".to_owned());
        }
        let places = header.values.saturating_mul(VIEW_BYTES);
        self.dictionary_bytes =
            self.dictionary_bytes.saturating_add(header.unpacked_bytes).saturating_add(places);
        Ok(())
    }
}

/// The pages of the columns of a row group that are read.
pub(super) fn pages_of<R: ChunkReader>(
    file: &R,
    group: &RowGroupMetaData,
    is_read: impl Fn(usize) -> bool,
) -> Result<Vec<Pages>, Problem> {
    let rows =
        u64::try_from(group.num_rows()).map_err(|_| "a row group has fewer rows than none".to_owned())?;
    let columns = group.columns().iter().enumerate().filter(|(leaf, _)| is_read(*leaf));
    columns.map(|(_, chunk)| walk(file, chunk, rows)).collect()
}

fn walk<R: ChunkReader>(file: &R, chunk: &ColumnChunkMetaData, rows: u64) -> Result<Pages, Problem> {
    let column = chunk.column_path().string();
    let broken = |what: &str| format!("the column {column:?}: {what}");
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let (start, bytes) = (u64::try_from(start), u64::try_from(chunk.compressed_size()));
    let (Ok(mut position), Ok(bytes)) = (start, bytes) else {
        return Err(broken("its place in the file is a negative number"));
    };
    let end = position.checked_add(bytes).filter(|end| *end <= file.len());
    let end = end.ok_or_else(|| broken("it reaches beyond the end of the file"))?;
    let (mut pages, mut rows_left) = (Pages::default(), rows);
    while position < end && rows_left > 0 {
        let header = header_at(file, position, end).ok_or_else(|| broken("a page has no header"))?;
        let behind = position + header.header_bytes as u64;
        position = behind
            .checked_add(header.compressed_bytes)
            .filter(|behind| *behind <= end)
            .ok_or_else(|| broken("a page reaches beyond its column"))?;
        pages.add(&header, rows_left).map_err(|what| broken(&what))?;
        if !header.is_dictionary {
            rows_left = rows_left.saturating_sub(header.values);
        }
    }
    Ok(pages)
}

/// The header of the page that begins at a position; most are short.
fn header_at<R: ChunkReader>(file: &R, position: u64, end: u64) -> Option<PageHeader> {
    [HEADER_BYTES, HEADER_BYTES_MAX].into_iter().find_map(|bytes| {
        let bytes = bytes.min(end - position);
        header::read(&file.get_bytes(position, bytes as usize).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn column(dictionary_bytes: u64, data: &[(u64, u64)]) -> Pages {
        let data = data.iter().map(|(bytes, rows)| (*bytes, *rows, false)).collect();
        Pages { dictionary_bytes, data, ..Pages::default() }
    }

    #[test]
    fn rows_hold_their_dictionary_and_every_page_that_they_touch() {
        let pages = column(5, &[(10, 4), (20, 1), (30, 1), (40, 4)]);
        for (rows, bytes) in [(1, 45), (2, 75), (3, 95), (4, 105), (1_000, 105)] {
            assert_eq!(pages.held(rows), bytes, "{rows}");
        }
        assert_eq!(column(7, &[]).held(3), 7);
        let folded = Pages { data: vec![(10, 3, true), (1, 9, false)], ..Pages::default() };
        assert_eq!((folded.held(1), folded.held(2), folded.held(100)), (10, 21, 31));
    }

    #[test]
    fn fewer_rows_are_read_at_once_where_rows_are_larger() {
        let small = column(MIB, &[(MIB, 20_000), (MIB, 20_000)]);
        assert_eq!(rows_at_once(&[small], 8_192, 64 * MIB), Some(8_192));
        // Each row has a page of its own that unfolds to sixteen mebibytes.
        let large = [column(0, &[(16 * MIB, 1); 1_000])];
        assert_eq!(rows_at_once(&large, 8_192, 64 * MIB), Some(4));
        assert_eq!(rows_at_once(&large, 8_192, 8 * MIB), None);
        let most = [column(u64::MAX, &[(1 << 31, 1)]), column(1, &[])];
        assert_eq!(rows_at_once(&most, 8_192, 64 * MIB), None);
    }
}
