//! The schema of a part: its columns and their names. docs/format/part.md.

use std::sync::Arc;

use model::limits::{
    PART_PAGE_BYTES_MAX, PART_PAGE_BYTES_MIN, PART_PAGES_PER_ROW_GROUP, PART_WRITE_BATCH_VALUES,
};
use model::{FieldType, TableName};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::column::{field_column, number_column, ts_column};
use super::column_stats::ColumnStats;
use super::info::PartLayout;
use crate::catalog::{SERIES_COLUMN, TS_COLUMN, Table};
use crate::row::KeyId;

/// The format version in the footer of a part.
const FORMAT_VERSION: &str = "2";
/// Columns of narrow parts.
const NARROW_TABLE: &str = "table";
const NARROW_TAGS: &str = "tags";
const NARROW_FIELD: &str = "field";
/// The value columns of a narrow part: one for each of some scales, and one for all other numbers.
pub(crate) const NARROW_VALUES: [(&str, Option<u8>); 8] = [
    ("value_0", Some(0)),
    ("value_1", Some(1)),
    ("value_2", Some(2)),
    ("value_3", Some(3)),
    ("value_4", Some(4)),
    ("value_6", Some(6)),
    ("value_9", Some(9)),
    ("value_double", None),
];

/// The definitions that a part needs.
#[derive(Debug, Clone)]
pub(crate) struct PartSchema {
    pub(crate) layout: PartLayout,
    /// The table of a wide part.
    pub(crate) table: u32,
    /// `None` for a narrow part.
    pub(crate) table_name: Option<TableName>,
    /// The physical names by tag number, of a wide part.
    pub(crate) tags: Vec<Arc<str>>,
    /// The names of the tags.
    pub(crate) tag_names: Vec<Arc<str>>,
    /// A narrow part has a field for each of [`NARROW_VALUES`], all for key 0 and f64.
    pub(crate) fields: Vec<PartField>,
    /// Dropped keys of the table of a wide part, ascending. The writer leaves their values out.
    pub(crate) dropped_keys: Vec<KeyId>,
}

/// A field column of a part.
#[derive(Debug, Clone)]
pub(crate) struct PartField {
    pub(crate) key: KeyId,
    pub(crate) key_name: Arc<str>,
    pub(crate) field_type: FieldType,
    pub(crate) physical: Arc<str>,
    /// The scale, if all values of an f64 column are decimals of this scale. The writer writes them as decimals.
    pub(crate) scale: Option<u8>,
}

/// The settings of the writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartSettings {
    pub(crate) row_group_rows: usize,
    pub(crate) row_group_bytes: usize,
    pub(crate) page_rows: usize,
    pub(crate) zstd_level: i32,
}

/// Bytes of texts that a read decodes at once, for row groups of this size.
pub(crate) fn text_block_bytes(row_group_bytes: usize) -> usize {
    (row_group_bytes / PART_PAGES_PER_ROW_GROUP).max(PART_PAGE_BYTES_MIN)
}

impl PartSettings {
    /// Bytes at which a page of text ends. A reader of one value, and each input of a merge, has a whole page in memory.
    fn page_bytes(self) -> usize {
        self.block_bytes().min(PART_PAGE_BYTES_MAX)
    }

    /// Rows of a page of the column `ts` in a row group whose texts have `text_bytes`. A read decodes such a page at once.
    pub(crate) fn rows_of_page(self, rows: usize, text_bytes: usize) -> usize {
        let fitting = self.block_bytes().saturating_mul(rows) / text_bytes.max(1);
        fitting.clamp(1, self.page_rows)
    }

    fn block_bytes(self) -> usize {
        text_block_bytes(self.row_group_bytes)
    }

    /// Values between two checks of the size of a page.
    fn write_batch_values(self) -> usize {
        (PART_WRITE_BATCH_VALUES * self.page_bytes() / PART_PAGE_BYTES_MAX).max(1)
    }
}

impl PartSchema {
    /// The schema of a wide part for rows with these statistics.
    pub(crate) fn with_stats(table: u32, definitions: &Table, stats: &ColumnStats) -> Self {
        let found = stats.keys();
        let has =
            |key: KeyId, field_type, _: &str| found.get(key as usize).is_some_and(|key| key.has(field_type));
        let mut schema = Self::wide(table, definitions, has);
        for field in schema.fields.iter_mut().filter(|field| field.field_type == FieldType::F64) {
            field.scale = found[field.key as usize].scale();
        }
        schema
    }

    /// The schema of a wide part. It has the columns of the table's live keys for which `has` returns true, by key, type and
    /// physical name. All f64 are doubles.
    pub(crate) fn wide(
        table: u32,
        definitions: &Table,
        has: impl Fn(KeyId, FieldType, &str) -> bool,
    ) -> Self {
        let mut fields = Vec::new();
        for (number, key) in definitions.live_keys() {
            for field_type in FieldType::ALL {
                let column = key.column(field_type);
                if let Some(physical) = column.filter(|name| has(number, field_type, name)) {
                    let (physical, key_name) = (physical.clone(), key.name.clone());
                    fields.push(PartField { key: number, key_name, field_type, physical, scale: None });
                }
            }
        }
        Self {
            layout: PartLayout::Wide,
            table,
            table_name: Some(definitions.name.clone()),
            tags: definitions.tags.iter().map(|tag| tag.physical.clone()).collect(),
            tag_names: definitions.tags.iter().map(|tag| tag.name.clone()).collect(),
            fields,
            dropped_keys: definitions.dropped_keys(),
        }
    }

    /// The schema of every narrow part.
    pub(crate) fn narrow() -> Self {
        let field = |(physical, scale): (&str, Option<u8>)| {
            let (key_name, physical) = ("".into(), physical.into());
            PartField { key: 0, key_name, field_type: FieldType::F64, physical, scale }
        };
        Self {
            layout: PartLayout::Narrow,
            table: 0,
            table_name: None,
            tags: Vec::new(),
            tag_names: Vec::new(),
            fields: NARROW_VALUES.into_iter().map(field).collect(),
            dropped_keys: Vec::new(),
        }
    }

    pub(crate) fn parquet(&self) -> Result<TypePtr> {
        let text = |name: &str| field_column(name, FieldType::String, None);
        let mut columns = Vec::new();
        match self.layout {
            PartLayout::Wide => {
                for tag in &self.tags {
                    columns.push(text(tag)?);
                }
            }
            PartLayout::Narrow => {
                columns.extend([text(NARROW_TABLE)?, text(NARROW_TAGS)?, text(NARROW_FIELD)?]);
            }
        }
        columns.push(ts_column(TS_COLUMN)?);
        for field in &self.fields {
            columns.push(field_column(&field.physical, field.field_type, field.scale)?);
        }
        columns.push(number_column(SERIES_COLUMN)?);
        Ok(Type::group_type_builder("row").with_fields(columns).build()?.into())
    }

    /// The settings for the columns that the `parquet` crate writes.
    pub(crate) fn properties(&self, settings: PartSettings) -> Result<WriterProperties> {
        let path = |name: &str| ColumnPath::new(vec![name.to_owned()]);
        let mut builder = WriterProperties::builder()
            .set_created_by("tachograph".to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(settings.zstd_level)?))
            .set_data_page_row_count_limit(settings.page_rows)
            .set_data_page_size_limit(settings.page_bytes())
            .set_dictionary_page_size_limit(settings.page_bytes())
            .set_write_batch_size(settings.page_rows.min(settings.write_batch_values()))
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(self.footer_pairs()));
        for field in &self.fields {
            if matches!(field.field_type, FieldType::String | FieldType::Json) {
                builder = builder.set_column_dictionary_enabled(path(&field.physical), true);
            }
        }
        Ok(builder.build())
    }

    /// The key-value pairs of the footer, for readers without the catalog of the store.
    fn footer_pairs(&self) -> Vec<KeyValue> {
        let pair = |name: String, value: String| KeyValue::new(name, value);
        let mut pairs = vec![pair("tachograph.format".to_owned(), FORMAT_VERSION.to_owned())];
        let Some(table) = &self.table_name else {
            pairs.push(pair("tachograph.layout".to_owned(), "narrow".to_owned()));
            return pairs;
        };
        pairs.push(pair("tachograph.table".to_owned(), table.name().to_owned()));
        if let Some(namespace) = table.namespace().name() {
            pairs.push(pair("tachograph.namespace".to_owned(), namespace.to_owned()));
        }
        for (physical, name) in self.tags.iter().zip(&self.tag_names) {
            pairs.push(pair(format!("tachograph.tag.{physical}"), name.to_string()));
        }
        for field in &self.fields {
            let name = format!("tachograph.field.{}", field.physical);
            pairs.push(pair(name, format!("{}:{}", field.field_type, field.key_name)));
        }
        pairs
    }
}
