//! Tells which columns of a table hold tags, the time and fields.

use arrow_schema::{Field, Schema};
use store::table::COLUMN_KIND;

/// Whether a column holds a tag.
pub(crate) fn is_tag(field: &Field) -> bool {
    is_of_kind(field, "tag")
}

/// The number of columns that hold fields. The kind of such a column is the type of the field.
pub(crate) fn field_count(schema: &Schema) -> usize {
    schema.fields().iter().filter(|column| !is_tag(column) && !is_ts(column)).count()
}

/// Whether a column holds the time.
pub(crate) fn is_ts(field: &Field) -> bool {
    is_of_kind(field, "ts")
}

fn is_of_kind(column: &Field, kind: &str) -> bool {
    column.metadata().get(COLUMN_KIND).is_some_and(|of_column| of_column == kind)
}
