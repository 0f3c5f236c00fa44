//! Whole tables, for callers with the permission: listing, retention, dropped keys, exports and imports.

use std::time::Duration;

use bytes::Bytes;
use model::{Date, Namespace};
use store::{StoreError, TableStatus};

use crate::audit::AUDIT_TABLE;
use crate::bulk::{
    BulkError, Export, ExportRequest, ImportCounts, ImportRules, ParquetBounds, TableColumn, Zone, drop_key,
    import_parquet, table_columns,
};
use crate::caller::{Action, Caller};
use crate::clock::system_now;
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::own_table;
use crate::retention;

impl Hub {
    /// The status of all tables of the caller's tenant.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`store::Reader::tables`] fails.
    pub fn tables(&self, caller: &Caller) -> Result<Vec<TableStatus>, Error> {
        caller.check(Action::ManageTables)?;
        let namespace = self.registry.namespace(caller.tenant());
        let mut tables = self.store().tables()?;
        tables.retain(|status| status.table.is_in(&namespace));
        Ok(tables)
    }

    /// The number of series in the tables of the caller's tenant.
    ///
    /// # Errors
    /// The caller may not read, or sees only what is assigned to a customer, or [`store::Reader::tables`] fails.
    pub fn series_count(&self, caller: &Caller) -> Result<u64, Error> {
        caller.check_on(Action::Read, caller.tenant(), None)?;
        let namespace = self.registry.namespace(caller.tenant());
        let tables = self.store().tables()?;
        Ok(tables.iter().filter(|status| status.table.is_in(&namespace)).map(|status| status.series).sum())
    }

    /// The columns of a table.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`table_columns`] fails.
    pub fn columns(&self, caller: &Caller, table: &str) -> Result<Vec<TableColumn>, Error> {
        caller.check(Action::ManageTables)?;
        Ok(table_columns(self.store(), &self.table(caller, table)?)?)
    }

    /// Drops a key of a table with all its columns.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`drop_key`] fails.
    pub fn drop_key(
        &self,
        caller: &Caller,
        table: &str,
        key: &str,
        dry_run: bool,
    ) -> Result<Vec<TableColumn>, Error> {
        caller.check(Action::ManageTables)?;
        let columns = drop_key(self.store(), &self.table(caller, table)?, key, dry_run)?;
        if !dry_run {
            self.audit(caller, "drop key", &format!("{key} of {table}"));
        }
        Ok(columns)
    }

    /// Sets for how long the table keeps rows; `None` forever. Waits for the disk. Refuses a table that does not exist,
    /// unless `may_create`.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`retention::set_ttl`] fails.
    pub fn set_ttl(
        &self,
        caller: &Caller,
        table: &str,
        ttl: Option<Duration>,
        may_create: bool,
    ) -> Result<(), Error> {
        caller.check(Action::ManageTables)?;
        let name = self.table(caller, table)?;
        retention::set_ttl(self.store(), &name, ttl, may_create)?;
        self.ttls.forget(&name);
        let ttl = ttl.map_or_else(|| "none".to_owned(), |ttl| format!("{} s", ttl.as_secs()));
        self.audit(caller, "set time to live of table", &format!("{table} to {ttl}"));
        Ok(())
    }

    /// For how long a table keeps rows, `None` forever. Without a table, or for one that does not exist: the default of the store.
    ///
    /// # Errors
    /// The caller lacks the permission, or the name breaks the rules for table names.
    pub fn ttl_of(&self, caller: &Caller, table: Option<&str>) -> Result<Option<Duration>, Error> {
        caller.check(Action::ManageTables)?;
        let table = match table {
            Some(table) => self.table(caller, table)?,
            // A table that does not exist has the default. No tenant and no database has this namespace.
            None => own_table(&Namespace::new("none").map_err(StoreError::from)?, "none"),
        };
        Ok(self.store.ttl(&table))
    }

    /// The days that would expire now ([`retention::expiring`]). It reads the times of rows: call it on a thread that may
    /// block.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`retention::expiring`] fails.
    pub fn expiring(
        &self,
        caller: &Caller,
        table: &str,
        ttl: Option<Duration>,
        may_create: bool,
    ) -> Result<Vec<(Date, u64)>, Error> {
        caller.check(Action::ManageTables)?;
        Ok(retention::expiring(self.store(), &self.table(caller, table)?, ttl, may_create, system_now())?)
    }

    /// Begins an export.
    ///
    /// # Errors
    /// The caller lacks the permission, or [`Export::begin`] fails.
    pub fn export(&self, caller: &Caller, table: &str, request: &ExportRequest) -> Result<Export, Error> {
        caller.check(Action::MoveData)?;
        let export = Export::begin(self.store(), &self.table(caller, table)?, request)?;
        self.audit(caller, "export table", table);
        Ok(export)
    }

    /// Imports a Parquet file into a table. Live subscribers do not get the rows: imports are historical. Blocks until the
    /// rows are durable.
    ///
    /// # Errors
    /// The caller lacks the permission, the table is [`AUDIT_TABLE`], which only the server writes, or [`import_parquet`] fails.
    pub fn import_parquet(
        &self,
        caller: &Caller,
        table: &str,
        file: Bytes,
        import: &ParquetImport<'_>,
    ) -> Result<ImportCounts, Error> {
        caller.check(Action::MoveData)?;
        if table == AUDIT_TABLE {
            let reason = format!(
                "only the server writes to the table {AUDIT_TABLE}; import the rows into a table of another name"
            );
            return Err(BulkError::Asked(reason).into());
        }
        let ParquetImport { bounds, zone, any_time, busy_timeout } = *import;
        let rules = ImportRules::of(self.limits(), system_now(), any_time);
        let counts = import_parquet(
            self.store(),
            &self.table(caller, table)?,
            file,
            bounds,
            zone,
            rules,
            busy_timeout,
        )?;
        self.audit(caller, "import", &format!("{} rows to {table}", counts.rows));
        Ok(counts)
    }
}

/// How an import treats its file.
#[derive(Debug, Clone, Copy)]
pub struct ParquetImport<'a> {
    /// The bounds within which the file unpacks.
    pub bounds: ParquetBounds,
    /// The time zone of times without a zone.
    pub zone: Option<&'a Zone>,
    /// Whether rows may have any time. Otherwise they have the bounds of devices.
    pub any_time: bool,
    /// How long the import waits for a busy store.
    pub busy_timeout: Duration,
}
