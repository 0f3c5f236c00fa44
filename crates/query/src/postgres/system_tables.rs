//! Finds a table of the system schemas by its name.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;

use super::columns::{self, INFORMATION_SCHEMA_NAME, PG_CATALOG_NAME};
use super::relations;
use crate::tables::OpenTables;

/// Returns a table of a system schema, as the user of the query may see it.
pub(crate) fn table(
    tables: &OpenTables,
    schema: &str,
    table: &str,
) -> Result<Option<Arc<dyn TableProvider>>> {
    match schema {
        PG_CATALOG_NAME => {
            columns::in_pg_catalog(table).map(|table| relations::pg_catalog(tables, table)).transpose()
        }
        INFORMATION_SCHEMA_NAME => columns::in_information_schema(table)
            .map(|table| relations::information_schema(tables, table))
            .transpose(),
        _ => Ok(None),
    }
}
