//! Deletions of values, rows, series and tables, for callers with the permission.
//!
//! All of them wait for the disk: call them on a thread that may block.

use model::{TableName, TimeRange};
use store::{TagMatcher, TagPredicate};
use timeseries::influxql::Removal;

use crate::bulk::{
    BulkError, DeleteRequest, Deleted, check_table, delete_of_series, delete_rows, drop_table, matchers,
    matchers_of_only,
};
use crate::caller::{Action, Caller};
use crate::databases::OpenDatabase;
use crate::error::Error;
use crate::hub::Hub;
use crate::series_owner::SeriesOwner;

impl Hub {
    /// Deletes values of a device or an asset in a time range: of some keys, or whole rows when `keys` is `None`. Returns the number of rows
    /// that lost values.
    ///
    /// # Errors
    /// The caller lacks the permission; the table does not have a key; or the store fails.
    pub fn delete_values<'a>(
        &self,
        caller: &Caller,
        owner: impl Into<SeriesOwner<'a>>,
        keys: Option<&[String]>,
        range: TimeRange,
    ) -> Result<u64, Error> {
        let owner = owner.into();
        owner.check(caller, Action::DeleteData)?;
        if self.store().find_series(&owner.key_in(&owner.table)?).is_none() {
            return Ok(0);
        }
        let predicate = TagPredicate::Is(owner.name.clone().into_owned());
        let request = DeleteRequest {
            matchers: vec![TagMatcher { tag: owner.tag.to_owned(), predicate }],
            what: Deleted::Rows { keys: keys.map(<[String]>::to_vec), range },
        };
        let rows = delete_rows(self.store(), &owner.table, &request, false)?;
        self.audit(caller, "delete values", &format!("{rows} rows of the {} {}", owner.tag, owner.name));
        Ok(rows)
    }

    /// Deletes from a table ([`delete_rows`]). Returns the number of rows that lose values.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`delete_rows`] fails.
    pub fn delete_rows(
        &self,
        caller: &Caller,
        table: &str,
        request: &DeleteRequest,
        dry_run: bool,
    ) -> Result<u64, Error> {
        self.delete_rows_of(caller, &self.table(caller, table)?, request, dry_run)
    }

    pub(crate) fn delete_rows_of(
        &self,
        caller: &Caller,
        table: &TableName,
        request: &DeleteRequest,
        dry_run: bool,
    ) -> Result<u64, Error> {
        caller.check(Action::DeleteData)?;
        let rows = delete_rows(self.store(), table, request, dry_run)?;
        if dry_run {
            return Ok(rows);
        }
        let act = match request.what {
            Deleted::Rows { .. } => "delete rows",
            Deleted::Series => {
                self.registry.forget_cached();
                "delete series"
            }
        };
        self.audit(caller, act, &format!("{rows} rows of {}", table.name()));
        Ok(rows)
    }

    /// Deletes series of a table with their rows: those that have these tags, all of them without tags. With `only_these` those that have
    /// no other tags. Returns the number of deleted rows.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`delete_rows`] fails.
    pub fn delete_series(
        &self,
        caller: &Caller,
        table: &str,
        tags: impl IntoIterator<Item = (String, String)>,
        only_these: bool,
    ) -> Result<u64, Error> {
        caller.check(Action::DeleteData)?;
        let matchers = match only_these {
            true => matchers_of_only(self.store(), &self.table(caller, table)?, tags)?,
            false => matchers(tags),
        };
        self.delete_rows(caller, table, &DeleteRequest { matchers, what: Deleted::Series }, false)
    }

    /// Drops a table of the caller's tenant. With `dry_run` only checks that it may. Devices that report again make a new table.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`drop_table`] fails.
    pub fn drop_table(&self, caller: &Caller, table: &str, dry_run: bool) -> Result<(), Error> {
        caller.check(Action::DeleteData)?;
        let name = self.table(caller, table)?;
        drop_table(self.store(), &name, dry_run)?;
        if !dry_run {
            self.forget_table(&name);
            self.audit(caller, "drop table", table);
        }
        Ok(())
    }

    /// Drops a table of a database, if it is there.
    ///
    /// # Errors
    /// As [`drop_table`](Self::drop_table), but a table that does not exist is not an error.
    pub fn drop_measurement(
        &self,
        caller: &Caller,
        database: &OpenDatabase,
        measurement: &str,
    ) -> Result<(), Error> {
        caller.check(Action::DeleteData)?;
        // A text that cannot be the name of a table names none.
        let Ok(name) = TableName::new(database.namespace(), measurement) else { return Ok(()) };
        match drop_table(self.store(), &name, false) {
            Ok(()) => {
                self.forget_table(&name);
                self.series_cache.forget(database.namespace());
                self.audit(caller, "drop table", &format!("{measurement} of {}", database.name()));
                Ok(())
            }
            Err(BulkError::NoTable { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes rows or series from the tables of a database. Returns the number of the rows that were removed. After an error
    /// tables that were already done have lost their rows.
    ///
    /// # Errors
    /// The caller lacks the permission; the condition does not suit a table; the removal names the audit table; or the store fails.
    pub fn remove(&self, caller: &Caller, database: &OpenDatabase, removal: &Removal) -> Result<u64, Error> {
        caller.check(Action::DeleteData)?;
        let tables = self.store().tables()?.into_iter().map(|status| status.table);
        let own = tables.filter(|table| table.is_in(database.namespace()) && removal.concerns(table.name()));
        let mut rows = 0;
        for table in own {
            match check_table(&table) {
                Err(_) if !removal.names(table.name()) => continue,
                checked => checked?,
            }
            rows += self.remove_from(&table, removal)?;
        }
        let act = match removal.range() {
            Some(_) => "delete rows",
            None => {
                self.series_cache.forget(database.namespace());
                self.registry.forget_cached();
                "delete series"
            }
        };
        self.audit(caller, act, &format!("{rows} rows of the database {}", database.name()));
        Ok(rows)
    }

    fn remove_from(&self, table: &TableName, removal: &Removal) -> Result<u64, Error> {
        let Some(snapshot) = self.store().snapshot(table)? else { return Ok(0) };
        let series = removal.series(&*snapshot).map_err(|error| BulkError::Asked(error.to_string()))?;
        let what = match removal.range() {
            Some(range) => Deleted::Rows { keys: None, range },
            None => Deleted::Series,
        };
        Ok(delete_of_series(self.store(), table, snapshot, series, &what, false)?)
    }

    fn forget_table(&self, table: &TableName) {
        self.ttls.forget(table);
        self.registry.forget_cached();
    }
}
