//! The reader of a part: its columns and its pages, as the footer describes them. columns.rs decodes the columns.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_schema::{DataType, Field, Schema};
use foldhash::fast::RandomState;
use model::FieldType;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::LogicalType;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;
use store::StoreError;

use super::blocks::BlockFile;
use super::handle::Part;
use super::info::PartLayout;
use super::page::{self, Page};
use super::schema::NARROW_VALUES;
use crate::catalog::{SERIES_COLUMN, Slot, TS_COLUMN};
use crate::disk::{Disk, OpenMode};

/// An open part with its footer.
pub(crate) struct PartReader {
    pub(super) file: BlockFile,
    columns: HashMap<Box<str>, usize, RandomState>,
    pub(super) arrow: ArrowReaderMetadata,
    pub(crate) pages: Vec<Page>,
    /// Of a narrow part, by page: two of its tables. The first read that needs them computes them.
    pub(super) tables: OnceLock<Vec<(u32, u32)>>,
    pub(super) series: usize,
    pub(crate) ts: usize,
    /// The value columns of a narrow part. One of them has the value of a row.
    pub(super) narrow: Vec<usize>,
    /// By column: the scale of its decimals.
    pub(super) scales: Vec<Option<u8>>,
}

impl PartReader {
    /// Opens the file of a part and reads its footer.
    pub(crate) fn of(disk: &dyn Disk, part: &Part) -> Result<Self, StoreError> {
        let file = disk.open(&part.path, OpenMode::Read);
        let file = file.map_err(|error| StoreError::io("open", &part.path, error))?;
        Self::open(BlockFile::new(file, part.path.clone(), part.info.clone()))
    }

    pub(crate) fn open(file: BlockFile) -> Result<Self, StoreError> {
        let read = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = Arc::new(read.parse_and_finish(&file).map_err(|error| file.error(&error))?);
        let schema = metadata.file_metadata().schema_descr();
        let names = schema.columns().iter().enumerate();
        let columns: HashMap<Box<str>, usize, RandomState> =
            names.map(|(index, column)| (column.name().into(), index)).collect();
        let scales = schema.columns().iter().map(|column| scale_of(column)).collect();
        let narrow = match file.info().layout {
            PartLayout::Narrow => {
                NARROW_VALUES.iter().filter_map(|(name, _)| columns.get(*name).copied()).collect()
            }
            PartLayout::Wide => Vec::new(),
        };
        let find = |name: &str| {
            columns
                .get(name)
                .copied()
                .ok_or_else(|| file.corrupt(0, format!("the part has no column {name}")))
        };
        let (series, ts) = (find(SERIES_COLUMN)?, find(TS_COLUMN)?);
        let pages = page::pages(&metadata, series, ts);
        let arrow = arrow_metadata(metadata).map_err(|error| file.error(&error))?;
        Ok(Self { file, columns, arrow, pages, tables: OnceLock::new(), series, ts, narrow, scales })
    }

    /// The number of a column by its physical name.
    pub(crate) fn column(&self, physical: &str) -> Option<usize> {
        self.columns.get(physical).copied()
    }

    /// Whether the part may have values of a field.
    pub(crate) fn has(&self, slot: &Slot) -> bool {
        match self.file.info().layout {
            PartLayout::Narrow => is_narrow(slot),
            PartLayout::Wide => self.columns.contains_key(&*slot.physical),
        }
    }

    pub(super) fn metadata(&self) -> &ParquetMetaData {
        self.arrow.metadata()
    }

    /// Whether no row of a row group has a value in a column.
    pub(super) fn is_empty(&self, group: usize, column: usize) -> bool {
        let chunk = self.metadata().row_group(group).column(column);
        chunk.statistics().and_then(Statistics::null_count_opt) == Some(chunk.num_values() as u64)
    }

    /// The uncompressed bytes of a row group.
    pub(super) fn unpacked_bytes(&self, group: usize) -> u64 {
        u64::try_from(self.metadata().row_group(group).total_byte_size()).unwrap_or(0)
    }

    /// The number of rows of a row group; `None` after the last one.
    pub(super) fn rows_of_group(&self, group: usize) -> Option<usize> {
        let metadata = self.metadata();
        (group < metadata.num_row_groups()).then(|| metadata.row_group(group).num_rows() as usize)
    }
}

/// Whether narrow parts may have values of a field. They have only numbers of the first key. The name of the field in wide
/// parts does not matter.
pub(super) fn is_narrow(slot: &Slot) -> bool {
    (slot.key, slot.field_type) == (0, FieldType::F64)
}

/// Metadata with the Arrow types of the contract.
fn arrow_metadata(metadata: Arc<ParquetMetaData>) -> ParquetResult<ArrowReaderMetadata> {
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let plain = ArrowReaderMetadata::try_new(metadata.clone(), options())?;
    let hint = |field: &Arc<Field>| {
        let data_type = match field.data_type() {
            DataType::Utf8 => DataType::Utf8View,
            DataType::Decimal128(precision, scale) => DataType::Decimal64(*precision, *scale),
            other => other.clone(),
        };
        field.as_ref().clone().with_data_type(data_type)
    };
    let hinted = Schema::new(plain.schema().fields().iter().map(hint).collect::<Vec<_>>());
    ArrowReaderMetadata::try_new(metadata, options().with_schema(Arc::new(hinted)))
}

/// The scale of a column; `None` if it does not have decimals.
fn scale_of(column: &ColumnDescriptor) -> Option<u8> {
    match column.logical_type_ref() {
        Some(LogicalType::Decimal(decimal)) => u8::try_from(decimal.scale).ok().filter(|scale| *scale <= 18),
        _ => None,
    }
}
