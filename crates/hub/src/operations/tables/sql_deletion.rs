//! DELETE in SQL for the doors: a permission, the rows that the statement names, and their deletion.

use model::TableName;
use query::{DataType, NamedRows, ScalarValue};
use store::StoreError;

use super::sql::{Parameter, Reader, SqlError};
use crate::bulk::{DeleteRequest, Deleted};
use crate::caller::Action;
use crate::error::Error;
use crate::hub::Hub;

// Part of the interface of the hub: the doors must not use the crate `query`.
pub use query::PreparedDeletion;

/// The rows that a DELETE names. [`Hub::delete_named_rows`] deletes them.
#[derive(Debug, Clone)]
pub struct RowsToDelete(Option<NamedRows>);

impl Hub {
    /// Checks a DELETE and finds the types of its parameters that are not given.
    ///
    /// # Errors
    /// The statement is not a DELETE of one table with a condition; or its names or types are wrong.
    pub async fn prepare_sql_deletion(
        &self,
        text: &str,
        types: &[Option<DataType>],
        reader: &Reader,
    ) -> Result<PreparedDeletion, SqlError> {
        self.engine()?.prepare_deletion(text, types, &reader.session(&self.registry, &self.store)).await
    }

    /// Finds the rows that a DELETE names. Nothing is deleted yet.
    ///
    /// # Errors
    /// The condition is more than conditions on tags and on the time, joined by AND; or a parameter is wrong.
    pub async fn rows_to_delete(
        &self,
        deletion: &PreparedDeletion,
        parameters: Vec<Parameter>,
        reader: &Reader,
    ) -> Result<RowsToDelete, SqlError> {
        let parameters = parameters.into_iter().map(ScalarValue::from).collect();
        let session = reader.session(&self.registry, &self.store);
        self.engine()?.named_rows(deletion, parameters, &session).await.map(RowsToDelete)
    }

    /// Deletes rows, and waits for the disk: call it on a thread that may block. Returns the number of rows.
    ///
    /// # Errors
    /// As [`delete_rows`](Self::delete_rows).
    pub fn delete_named_rows(&self, reader: &Reader, rows: RowsToDelete) -> Result<u64, Error> {
        reader.caller().check(Action::DeleteData)?;
        let Some(rows) = rows.0 else { return Ok(0) };
        let table =
            TableName::new(&reader.namespace(&self.registry), &rows.table).map_err(StoreError::from)?;
        let request =
            DeleteRequest { matchers: rows.matchers, what: Deleted::Rows { keys: None, range: rows.range } };
        self.delete_rows_of(reader.caller(), &table, &request, false)
    }
}
