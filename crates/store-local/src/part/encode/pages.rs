//! Puts encoded values into compressed pages, and collects the metadata for footer and indexes.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type as PhysicalType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::hybrid::HybridWriter;

/// Compresses pages. A part has one compressor, because its tables are large.
pub(crate) struct Compressor(zstd::bulk::Compressor<'static>);

impl Compressor {
    /// A compressor with a zstd level.
    pub(crate) fn new(level: i32) -> Result<Self> {
        Ok(Self(zstd::bulk::Compressor::new(level)?))
    }

    pub(crate) fn compress(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        Ok(self.0.compress(bytes)?)
    }
}

/// The smallest and the largest value, as bytes in the file.
pub(crate) enum Extremes {
    Numbers(i64, i64),
    Doubles(f64, f64),
}

/// The rows of a page that have values.
#[derive(Clone, Copy)]
pub(crate) enum Presence<'a> {
    /// The rows of a required column. The page has no levels.
    Required(usize),
    /// All rows of an optional column.
    All(usize),
    /// These rows, counted from the first row of the page.
    Some(usize, &'a [u32], u32),
}

impl Presence<'_> {
    fn rows(&self) -> usize {
        match *self {
            Self::Required(rows) | Self::All(rows) | Self::Some(rows, ..) => rows,
        }
    }

    /// The number of rows without a value.
    pub(crate) fn nulls(&self) -> usize {
        match self {
            Self::Required(_) | Self::All(_) => 0,
            Self::Some(rows, present, _) => rows - present.len(),
        }
    }

    /// Appends the definition levels of a page: their length and their runs.
    pub(crate) fn put_levels(&self, out: &mut Vec<u8>) {
        if matches!(self, Self::Required(_)) {
            return;
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let mut levels = HybridWriter::new(out, 1);
        match *self {
            Self::Required(_) => {}
            Self::All(rows) => levels.run(1, rows),
            Self::Some(rows, present, first) => {
                let mut next = 0;
                for run in present.chunk_by(|a, b| a + 1 == *b) {
                    let at = run[0] - first;
                    levels.run(0, (at - next) as usize);
                    levels.run(1, run.len());
                    next = at + run.len() as u32;
                }
                levels.run(0, rows - next as usize);
            }
        }
        levels.finish();
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Builds a column chunk.
pub(crate) struct ChunkPages<'z> {
    descriptor: ColumnDescPtr,
    compressor: &'z mut Compressor,
    sink: TrackedWrite<Vec<u8>>,
    offsets: OffsetIndexBuilder,
    statistics: Option<ColumnIndexBuilder>,
    encodings: Vec<Encoding>,
    dictionary_offset: Option<i64>,
    data_offset: Option<i64>,
    uncompressed: i64,
    values: i64,
    nulls: u64,
}

impl<'z> ChunkPages<'z> {
    /// Starts a chunk. Set `page_statistics` for a column whose pages are searched by their smallest and largest value.
    pub(crate) fn new(
        descriptor: ColumnDescPtr,
        compressor: &'z mut Compressor,
        page_statistics: bool,
    ) -> Self {
        Self {
            descriptor,
            compressor,
            sink: TrackedWrite::new(Vec::new()),
            offsets: OffsetIndexBuilder::new(),
            statistics: page_statistics.then(|| ColumnIndexBuilder::new(PhysicalType::INT64)),
            encodings: vec![Encoding::RLE],
            dictionary_offset: None,
            data_offset: None,
            uncompressed: 0,
            values: 0,
            nulls: 0,
        }
    }

    /// Writes the dictionary page: `count` values in plain encoding.
    pub(crate) fn dictionary(&mut self, plain: &[u8], count: usize) -> Result<()> {
        let buf = Bytes::from(self.compressor.compress(plain)?);
        let encoding = Encoding::PLAIN;
        let page = Page::DictionaryPage { buf, num_values: count as u32, encoding, is_sorted: false };
        let (offset, _) = self.write(page, plain.len())?;
        self.dictionary_offset = Some(offset);
        self.note(encoding);
        Ok(())
    }

    /// Writes a data page. `body` has levels and encoded values.
    pub(crate) fn data(
        &mut self,
        body: &[u8],
        encoding: Encoding,
        presence: Presence<'_>,
        extremes: Option<(i64, i64)>,
    ) -> Result<()> {
        let buf = Bytes::from(self.compressor.compress(body)?);
        let page = Page::DataPage {
            buf,
            num_values: presence.rows() as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let (offset, bytes) = self.write(page, body.len())?;
        self.data_offset.get_or_insert(offset);
        self.note(encoding);
        self.offsets.append_row_count(presence.rows() as i64);
        self.offsets.append_offset_and_size(offset, bytes as i32);
        if let (Some(statistics), Some((min, max))) = (&mut self.statistics, extremes) {
            let bytes = |number: i64| number.to_le_bytes().to_vec();
            statistics.append(false, bytes(min), bytes(max), 0);
        }
        self.values += presence.rows() as i64;
        self.nulls += presence.nulls() as u64;
        Ok(())
    }

    fn write(&mut self, page: Page, uncompressed: usize) -> Result<(i64, u64)> {
        let spec =
            SerializedPageWriter::new(&mut self.sink).write_page(CompressedPage::new(page, uncompressed))?;
        self.uncompressed += spec.uncompressed_size as i64;
        Ok((spec.offset as i64, spec.bytes_written))
    }

    fn note(&mut self, encoding: Encoding) {
        if !self.encodings.contains(&encoding) {
            self.encodings.push(encoding);
        }
    }

    /// The bytes of the chunk, and the metadata for the row group writer.
    pub(crate) fn close(self, extremes: Option<Extremes>) -> Result<(Bytes, ColumnCloseResult)> {
        let bytes = Bytes::from(self.sink.into_inner()?);
        let data_offset = self
            .data_offset
            .ok_or_else(|| ParquetError::General("BUG: a column chunk without rows".to_owned()))?;
        let physical_type = self.descriptor.physical_type();
        let mut metadata = ColumnChunkMetaData::builder(self.descriptor)
            .set_encodings(self.encodings)
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_num_values(self.values)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed)
            .set_data_page_offset(data_offset)
            .set_dictionary_page_offset(self.dictionary_offset);
        let nulls = Some(self.nulls);
        metadata = match extremes {
            Some(Extremes::Numbers(min, max)) => {
                metadata.set_statistics(Statistics::int64(Some(min), Some(max), None, nulls, false))
            }
            Some(Extremes::Doubles(min, max)) => {
                metadata.set_statistics(Statistics::double(Some(min), Some(max), None, nulls, false))
            }
            // Readers skip a column without any value.
            None if self.nulls == self.values.cast_unsigned() => match physical_type {
                PhysicalType::INT64 => {
                    metadata.set_statistics(Statistics::int64(None, None, None, nulls, false))
                }
                PhysicalType::DOUBLE => {
                    metadata.set_statistics(Statistics::double(None, None, None, nulls, false))
                }
                _ => metadata,
            },
            None => metadata,
        };
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.values as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: self.statistics.map(ColumnIndexBuilder::build).transpose()?,
            offset_index: Some(self.offsets.build()),
        };
        Ok((bytes, close))
    }
}
