//! Storages: the output of a sensor is copied to a table of its database.
//!
//! The store of this server has the rows first. So a database that is away loses none: the exporter continues where it was.

use std::sync::Arc;
use std::time::Instant;

use hub::caller::Caller;
use hub::clock::system_now;
use virtual_sensors::{DatabaseOptions, Extent, OutputRow, SensorOutput, VirtualSensors};

use super::limits::{HISTORY_INTERVAL, HISTORY_ROWS_OVER_MIN};
use super::{Database, DatabaseError, Pools, Table};
use crate::exporter::{Exporter, follow};
use crate::tasks;

/// Keeps an exporter for each sensor with a storage, as sensors are loaded, changed and removed, until the runtime ends.
pub(crate) async fn manage(sensors: Arc<VirtualSensors>, pools: Arc<Pools>) {
    let caller = Caller::local(sensors.tenant());
    let outputs = match sensors.outputs(&caller) {
        Ok(outputs) => outputs,
        Err(error) => return tracing::error!(%error, "no storage of a virtual sensor is written"),
    };
    let begin = |output: Arc<SensorOutput>| {
        let (request, options) = (output.storage_follower()?, output.storage.clone()?);
        let exporter = DatabaseExporter::new(&pools, &options, &output.sensor, &output, output.history);
        Some(follow(Arc::clone(&sensors), request, exporter))
    };
    tasks::manage(outputs, |output| &output.sensor, begin).await;
}

/// Writes the rows of a sensor into its table.
pub(crate) struct DatabaseExporter {
    database: Arc<Database>,
    table: Result<Table, String>,
    history: Option<Extent>,
    /// Rows since the last deletion.
    written: usize,
    trimmed: Option<Instant>,
    /// Rows that the database has refused.
    refused: u64,
}

impl Exporter for DatabaseExporter {
    async fn prepare(&mut self) -> Result<(), String> {
        let (database, table) = self.parts()?;
        database.ensure_table(table).await.map_err(|error| error.to_string())
    }

    async fn write(&mut self, rows: &[OutputRow]) -> Result<(), String> {
        let (database, table) = self.parts()?;
        let refused = write_rows(database, table, rows).await.map_err(|error| error.to_string())?;
        self.written += rows.len();
        self.trim().await.map_err(|error| error.to_string())?;
        self.refused += refused;
        Ok(())
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}

impl DatabaseExporter {
    /// An exporter of the rows of a sensor into a table, which keeps a history if one is given.
    pub(crate) fn new(
        pools: &Pools,
        options: &DatabaseOptions,
        table: &str,
        output: &SensorOutput,
        history: Option<Extent>,
    ) -> Self {
        let table = Table::new(table, output.has_unique_timestamps, &output.fields);
        Self { database: pools.get(options), table, history, written: 0, trimmed: None, refused: 0 }
    }

    fn parts(&self) -> Result<(&Database, &Table), String> {
        Ok((&self.database, self.table.as_ref().map_err(Clone::clone)?))
    }

    /// Deletes the rows that the history does not keep.
    async fn trim(&mut self) -> Result<(), DatabaseError> {
        let (Ok(table), Some(history)) = (&self.table, self.history) else { return Ok(()) };
        let database = &self.database;
        match history {
            Extent::Count(count) => {
                let over = (count / 10).max(HISTORY_ROWS_OVER_MIN);
                if self.trimmed.is_some() && self.written < over {
                    return Ok(());
                }
                database.keep_newest(table, count).await?;
            }
            Extent::Millis(millis) => {
                if self.trimmed.is_some_and(|at| at.elapsed() < HISTORY_INTERVAL) {
                    return Ok(());
                }
                database.delete_before(table, system_now().millis().saturating_sub(millis)).await?;
            }
        }
        (self.written, self.trimmed) = (0, Some(Instant::now()));
        Ok(())
    }
}

/// Writes rows, and states how many of them the database refuses for their values. These stay in the store of this server only.
async fn write_rows(database: &Database, table: &Table, rows: &[OutputRow]) -> Result<u64, DatabaseError> {
    match database.write_rows(table, rows).await {
        Err(error) if error.is_of_data => {}
        done => return done.map(|()| 0),
    }
    let (mut refused, mut last) = (0, None);
    for row in rows {
        match database.write_rows(table, std::slice::from_ref(row)).await {
            Err(error) if error.is_of_data => {
                refused += 1;
                last = Some((row.us, error));
            }
            done => done?,
        }
    }
    if let Some((last_us, error)) = last {
        tracing::warn!(rows = refused, last_us, %error, "a database refuses rows of a virtual sensor");
    }
    Ok(refused)
}
