//! Checks texts whose lengths are encoded as deltas: a page has the number of lengths, and the decoder trusts it.
//!
//! So this code first compares the number with the header of the page. The encoding of the lengths is `DELTA_BINARY_PACKED`:
//! <https://github.com/apache/parquet-format/blob/master/Encodings.md>.

use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use super::pages::Problem;

/// Refuses a column with a page that has more lengths than values.
pub(super) fn check<R: ChunkReader + 'static>(
    file: Arc<R>,
    chunk: &ColumnChunkMetaData,
    rows: usize,
) -> Result<(), Problem> {
    let column = chunk.column_path().string();
    let unreadable = |error| format!("the column {column:?}: {error}");
    let optional = chunk.column_descr().max_def_level() > 0;
    let pages = SerializedPageReader::new(file, chunk, rows, None).map_err(unreadable)?;
    for page in pages {
        let page = page.map_err(unreadable)?;
        if !has_right_lengths(&page, optional).unwrap_or(false) {
            return Err(format!("the column {column:?}: a page has other lengths of texts than it says"));
        }
    }
    Ok(())
}

/// Whether a page has at most as many lengths as values; `None` if it ends too early.
fn has_right_lengths(page: &Page, optional: bool) -> Option<bool> {
    let lists = match page.encoding() {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return Some(true),
    };
    let mut bytes = values_of(page, optional)?;
    for _ in 0..lists {
        let (count, rest) = skip_packed(bytes)?;
        if count > u64::from(page.num_values()) {
            return Some(false);
        }
        bytes = rest;
    }
    Some(true)
}

/// A page after its levels.
fn values_of(page: &Page, optional: bool) -> Option<&[u8]> {
    match page {
        Page::DataPage { buf, .. } if !optional => Some(buf),
        Page::DataPage { buf, .. } => {
            let levels = u32::from_le_bytes(buf.get(..4)?.try_into().ok()?);
            buf.get(4..)?.get(levels as usize..)
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            buf.get(*rep_levels_byte_len as usize..)?.get(*def_levels_byte_len as usize..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// The number of packed numbers, and the bytes after them.
fn skip_packed(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (block, miniblocks) = (varint(&mut bytes)?, varint(&mut bytes)?);
    let count = varint(&mut bytes)?;
    varint(&mut bytes)?; // the first number
    let in_miniblock = block.checked_div(miniblocks).filter(|numbers| *numbers > 0)?;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        varint(&mut bytes)?; // the smallest difference
        let widths = bytes.get(..usize::try_from(miniblocks).ok()?)?;
        bytes = &bytes[widths.len()..];
        for width in widths {
            if left == 0 {
                break;
            }
            let packed = u64::from(*width).checked_mul(in_miniblock)? / 8;
            bytes = bytes.get(usize::try_from(packed).ok()?..)?;
            left = left.saturating_sub(in_miniblock);
        }
    }
    Some((count, bytes))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(bytes: &[u8], encoding: Encoding) -> Page {
        Page::DataPage {
            buf: bytes.to_vec().into(),
            num_values: 3,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn a_page_with_more_lengths_than_values_is_refused() {
        // Blocks of 128 values in 4 miniblocks, three lengths, each one more than the last, and a text after them.
        let right = [0x80, 0x01, 0x04, 0x03, 0x02, 0x02, 0, 0, 0, 0, b'a'];
        assert_eq!(skip_packed(&right), Some((3, &b"a"[..])));
        let of = |bytes: &[u8], encoding| has_right_lengths(&page(bytes, encoding), false);
        assert_eq!(of(&right, Encoding::DELTA_LENGTH_BYTE_ARRAY), Some(true));
        assert_eq!(of(&right, Encoding::DELTA_BYTE_ARRAY), None);
        let twice = [&right[..10], &right[..]].concat();
        assert_eq!(of(&twice, Encoding::DELTA_BYTE_ARRAY), Some(true));
        let four = [0x80, 0x01, 0x04, 0x04, 0x02, 0x02, 0, 0, 0, 0];
        assert_eq!(of(&[&right[..10], &four[..]].concat(), Encoding::DELTA_BYTE_ARRAY), Some(false));
        // Two thousand million lengths in one block, each of zero bits.
        let many = [0x80, 0x80, 0x80, 0x80, 0x08, 0x01, 0x80, 0x80, 0x80, 0x80, 0x08, 0x02, 0x02, 0x00];
        assert_eq!(of(&many, Encoding::DELTA_LENGTH_BYTE_ARRAY), Some(false));
        assert_eq!(of(&many, Encoding::PLAIN), Some(true));
        for len in 0..9 {
            assert_eq!(of(&right[..len], Encoding::DELTA_LENGTH_BYTE_ARRAY), None, "{len}");
        }
        assert_eq!(skip_packed(&[0, 0, 3, 0]), None);
    }
}
