//! Whether a table exists.

use model::TableName;
use store::{Store, StoreError};

/// Whether the table exists, with rows or without.
pub(crate) fn is_there(store: &dyn Store, table: &TableName) -> Result<bool, StoreError> {
    Ok(store.tables()?.iter().any(|status| status.table == *table))
}
