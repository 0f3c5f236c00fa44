//! Decompresses the pages of a column with a context that the thread keeps.
//!
//! The page reader of the library creates a context for each column that it begins, and a merge begins each column once for
//! every window of rows. The creation of a context executes `cpuid`, which a virtual machine passes to its hypervisor. In a
//! measurement that took a seventh of the time of a merge. So this file tells the library that the pages are not compressed,
//! and decompresses them itself.

use std::cell::RefCell;
use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

use super::blocks::BlockFile;
use super::read::PartReader;

impl PartReader {
    /// The pages of a column in a row group.
    pub(super) fn column_pages(&self, column: usize, group: usize) -> Result<Box<dyn PageReader>> {
        let rows = self.metadata().row_group(group);
        let chunk = rows.column(column);
        let index = self.metadata().offset_index().and_then(|groups| groups.get(group)?.get(column));
        let places = index.map(|index| index.page_locations().clone());
        let begin = |chunk: &ColumnChunkMetaData| {
            let file = Arc::new(self.file.clone());
            SerializedPageReader::new(file, chunk, rows.num_rows() as usize, places)
        };
        if !matches!(chunk.compression(), Compression::ZSTD(_)) {
            return Ok(Box::new(begin(chunk)?));
        }
        let bytes_max = usize::try_from(chunk.uncompressed_size())?;
        let as_they_are = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        Ok(Box::new(Pages { compressed: begin(&as_they_are)?, bytes_max }))
    }
}

/// Pages compressed with zstd.
struct Pages {
    compressed: SerializedPageReader<BlockFile>,
    /// The largest number of bytes of all pages together.
    bytes_max: usize,
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.compressed.get_next_page()?;
        page.map(|page| decompressed(page, self.bytes_max)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.compressed.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.compressed.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.compressed.at_record_boundary()
    }
}

fn decompressed(mut page: Page, bytes_max: usize) -> Result<Page> {
    match &mut page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
            *buf = decompress(buf, 0, bytes_max)?
        }
        Page::DataPageV2 { is_compressed: false, .. } => {}
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
            *buf = decompress(buf, levels, bytes_max)?;
        }
    }
    Ok(page)
}

/// Decompresses the bytes after the first `plain` ones, which stay as they are.
fn decompress(bytes: &Bytes, plain: usize, bytes_max: usize) -> Result<Bytes> {
    thread_local! {
        static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let short =
        || ParquetError::General(format!("a page of {} bytes has {plain} bytes of levels", bytes.len()));
    let (levels, frame) = bytes.split_at_checked(plain).ok_or_else(short)?;
    // A page without values.
    if frame.is_empty() {
        return Ok(bytes.clone());
    }
    let told = get_frame_content_size(frame).ok().flatten().and_then(|size| usize::try_from(size).ok());
    let mut out = Vec::with_capacity(plain + told.unwrap_or(usize::MAX).min(bytes_max));
    out.extend_from_slice(levels);
    DECOMPRESSOR.with_borrow_mut(|kept| -> Result<()> {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new()?),
        };
        let mut cursor = Cursor::new(&mut out);
        cursor.set_position(plain as u64);
        decompressor.decompress_to_buffer(frame, &mut cursor)?;
        Ok(())
    })?;
    Ok(Bytes::from(out))
}

#[cfg(test)]
mod tests {
    use parquet::basic::Encoding;

    use super::*;

    const PLAIN: &[u8] = b"values values values values values";

    fn frame() -> Vec<u8> {
        zstd::bulk::compress(PLAIN, 1).unwrap()
    }

    fn version_2(levels: &[u8], values: &[u8], is_compressed: bool) -> Page {
        Page::DataPageV2 {
            buf: [levels, values].concat().into(),
            num_values: 9,
            encoding: Encoding::PLAIN,
            num_nulls: 0,
            num_rows: 9,
            def_levels_byte_len: levels.len() as u32 - 1,
            rep_levels_byte_len: 1,
            is_compressed,
            statistics: None,
        }
    }

    #[test]
    fn every_kind_of_page_is_decompressed() {
        let encoding = Encoding::PLAIN;
        let dictionary =
            Page::DictionaryPage { buf: frame().into(), num_values: 1, encoding, is_sorted: false };
        assert_eq!(decompressed(dictionary, 100).unwrap().buffer(), PLAIN);
        let data = Page::DataPage {
            buf: frame().into(),
            num_values: 1,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        assert_eq!(decompressed(data, 100).unwrap().buffer(), PLAIN);
        let levels_stay = [&b"levels"[..], PLAIN].concat();
        let data = version_2(b"levels", &frame(), true);
        assert_eq!(decompressed(data, 100).unwrap().buffer(), &levels_stay);
        let as_it_is = version_2(b"levels", PLAIN, false);
        assert_eq!(decompressed(as_it_is, 100).unwrap().buffer(), &levels_stay);
        let without_values = version_2(b"levels", b"", true);
        assert_eq!(decompressed(without_values, 100).unwrap().buffer().as_ref(), b"levels");
    }

    #[test]
    fn frames_that_do_not_tell_their_size_are_bounded_by_the_chunk() {
        let frame = Bytes::from(zstd::stream::encode_all(PLAIN, 1).unwrap());
        assert_eq!(get_frame_content_size(&frame).unwrap(), None);
        assert_eq!(decompress(&frame, 0, 100).unwrap(), PLAIN);
        assert!(decompress(&frame, 0, PLAIN.len() - 1).is_err());
    }

    #[test]
    fn what_is_not_a_page_is_an_error() {
        let frame = Bytes::from(frame());
        assert!(decompress(&frame, 0, PLAIN.len() - 1).is_err(), "larger than its chunk says");
        assert!(decompress(&frame.slice(..frame.len() - 1), 0, 100).is_err());
        assert!(
            decompress(&frame, frame.len() + 1, 100).unwrap_err().to_string().contains("bytes of levels")
        );
        assert_eq!(decompress(&frame, 0, 100).unwrap(), PLAIN, "the context is as good as before");
    }
}
