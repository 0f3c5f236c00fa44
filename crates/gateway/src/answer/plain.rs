//! Casts memory-saving types (views, dictionaries, runs) to the plain types that every reader knows.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// Casts batches of one schema.
#[derive(Debug)]
pub(super) struct Plain {
    schema: SchemaRef,
}

impl Plain {
    pub(super) fn new(schema: &Schema) -> Self {
        let fields = schema.fields().iter().map(|field| {
            // The metadata of the engine is left out.
            Arc::new(Field::new(field.name(), plain(field.data_type()), true))
        });
        Self { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())) }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = batch.columns().iter().zip(self.schema.fields()).map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(Arc::clone(column))
            } else {
                arrow_cast::cast(column, field.data_type())
            }
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, values) => plain(values),
        DataType::RunEndEncoded(_, values) => plain(values.data_type()),
        DataType::List(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) => DataType::LargeList(plain_field(item)),
        other => other.clone(),
    }
}

fn plain_field(field: &Arc<Field>) -> Arc<Field> {
    Arc::new(Field::new(field.name(), plain(field.data_type()), field.is_nullable()))
}
