//! The roles of the columns of a file: the time, tags, fields.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use model::name;
use store::table::{COLUMN_KIND, COLUMN_NAME, TS_COLUMN};

use super::BulkError;
use super::cells;

/// The roles of the columns of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    pub(super) ts: usize,
    pub(super) tags: Vec<(usize, String)>,
    /// Fields, each with whether its texts are JSON.
    pub(super) fields: Vec<(usize, String, bool)>,
    /// For each field the column with the exact integers of the same key, as an export writes it. A row with an integer has no
    /// second value.
    pub(super) exact: Vec<Option<usize>>,
    /// Columns that are not imported, with the reason.
    pub skipped: Vec<(String, String)>,
}

impl Columns {
    /// Reads a schema. The schema of an export has the role of each column. Otherwise `tags` and `ts` name columns, and all others
    /// are fields.
    ///
    /// # Errors
    /// The reason in words: a named column is missing, there is no time, a tag has no text form, two columns have the same name,
    /// or a name breaks the rules.
    pub fn of(schema: &Schema, tags: &[String], ts: Option<&str>) -> Result<Self, BulkError> {
        let (tags_found, fields, exact) = (Vec::new(), Vec::new(), Vec::new());
        let mut columns = Self { ts: usize::MAX, tags: tags_found, fields, exact, skipped: Vec::new() };
        let ts = ts.unwrap_or(TS_COLUMN);
        for tag in tags {
            if schema.index_of(tag).is_err() {
                return Err(BulkError::Asked(format!(
                    "there is no column {tag:?} for a tag; {}",
                    known(schema)
                )));
            }
            if tag == ts {
                return Err(BulkError::Asked(format!("the column {tag:?} cannot be the time and a tag")));
            }
        }
        let mut names = HashSet::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if !names.insert(field.name()) {
                let reason = format!("two columns are named {:?}; rename one of them", field.name());
                return Err(BulkError::Asked(reason));
            }
            columns.column(index, field, tags, ts)?;
        }
        let of_type = |index: usize, of: &DataType| schema.field(index).data_type() == of;
        let exact = |(index, key, _): &(usize, String, bool)| {
            let is_exact = |(of_other, other, _): &&(usize, String, bool)| {
                other == key && of_type(*of_other, &DataType::Int64)
            };
            let found = columns.fields.iter().find(is_exact).filter(|_| of_type(*index, &DataType::Float64));
            found.map(|(of_other, ..)| *of_other)
        };
        columns.exact = columns.fields.iter().map(exact).collect();
        match columns.ts {
            usize::MAX => Err(BulkError::Asked(format!(
                "there is no column {ts:?} with times; name it ({})",
                known(schema)
            ))),
            _ => Ok(columns),
        }
    }

    fn column(&mut self, index: usize, field: &Field, tags: &[String], ts: &str) -> Result<(), BulkError> {
        let kind = field.metadata().get(COLUMN_KIND).map(String::as_str);
        let column = field.metadata().get(COLUMN_NAME).unwrap_or(field.name()).clone();
        let is_tag = kind == Some("tag") || tags.contains(field.name());
        let mut skip = |reason: &str| self.skipped.push((field.name().clone(), reason.to_owned()));
        if field.name() == ts || kind == Some("ts") {
            match field.data_type() {
                DataType::Timestamp(_, _) | DataType::Int64 => self.ts = index,
                _ => skip("it holds no times"),
            }
            return Ok(());
        }
        if !is_tag && field.name().starts_with("__") {
            skip("it is the store's own");
            return Ok(());
        }
        let is_value = cells::is_value(field.data_type());
        if is_tag && !is_value {
            return Err(BulkError::Asked(format!(
                "the column {:?} cannot be a tag: values of type {} have no text",
                field.name(),
                field.data_type()
            )));
        }
        if !is_value {
            skip(&format!("values of type {} are not understood", field.data_type()));
            return Ok(());
        }
        name::check_key(&column)
            .map_err(|error| BulkError::Asked(format!("the column {:?}: {error}", field.name())))?;
        if is_tag {
            self.tags.push((index, column));
        } else {
            self.fields.push((index, column, kind == Some("json")));
        }
        Ok(())
    }

    /// The exact text of a cell of any column that can be a tag; `None` for no value.
    pub fn text_of(column: &dyn Array, row: usize) -> Option<String> {
        cells::tag(column, row)
    }

    /// The time of a row in microseconds; `None` if it has no time that can be represented.
    pub fn time_of(&self, rows: &RecordBatch, row: usize) -> Option<i64> {
        let time = cells::time(rows.column(self.ts).as_ref(), row);
        time.ok().flatten().map(|(ts, _)| ts.micros())
    }

    /// Hashes the tags of a row.
    pub fn hash_tags(&self, rows: &RecordBatch, row: usize, state: &mut impl Hasher) {
        for (index, name) in &self.tags {
            let column = rows.column(*index).as_ref();
            match cells::text(column, row) {
                Some(text) => (name, Some(text)).hash(state),
                None => (name, cells::tag(column, row).as_deref()).hash(state),
            }
        }
    }

    /// Names of the fields for which a row has a value, in the order of the columns.
    pub fn fields_of(&self, rows: &RecordBatch, row: usize) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter();
        fields.filter_map(move |(index, name, _)| rows.column(*index).is_valid(row).then_some(name.as_str()))
    }
}

fn known(schema: &Schema) -> String {
    let names: Vec<_> = schema.fields().iter().map(|field| format!("{:?}", field.name())).collect();
    format!("the file has {}", names.join(", "))
}

impl Columns {
    /// The imported columns, with a schema that has the role of each, so [`of`](Self::of) needs no names.
    ///
    /// # Errors
    /// [`BulkError::Data`] if the batch has another schema.
    pub fn described(&self, rows: &RecordBatch) -> Result<RecordBatch, BulkError> {
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        let mut push = |index: usize, name: &str, kind: &str| {
            let pairs =
                [(COLUMN_KIND.to_owned(), kind.to_owned()), (COLUMN_NAME.to_owned(), name.to_owned())];
            let field = rows.schema_ref().field(index).clone().with_metadata(pairs.into_iter().collect());
            fields.push(field);
            columns.push(rows.column(index).clone());
        };
        push(self.ts, TS_COLUMN, "ts");
        self.tags.iter().for_each(|(index, name)| push(*index, name, "tag"));
        self.fields
            .iter()
            .for_each(|(index, name, json)| push(*index, name, if *json { "json" } else { "" }));
        let schema = std::sync::Arc::new(Schema::new(fields));
        RecordBatch::try_new(schema, columns).map_err(|error| BulkError::Data(error.to_string()))
    }
}

/// The columns of a batch, with dictionaries decoded.
///
/// # Errors
/// [`BulkError::Data`] if a key is outside of its dictionary.
pub(super) fn plain_columns(rows: &RecordBatch) -> Result<Vec<ArrayRef>, BulkError> {
    rows.columns().iter().map(plain).collect()
}

fn plain(column: &ArrayRef) -> Result<ArrayRef, BulkError> {
    let Some(dictionary) = column.as_any_dictionary_opt() else { return Ok(ArrayRef::clone(column)) };
    let values = arrow_select::take::take(dictionary.values(), dictionary.keys(), None);
    plain(&values.map_err(|error| BulkError::Data(error.to_string()))?)
}
