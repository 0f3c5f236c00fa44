//! Storages: the output of a sensor is copied to a table of its database.
//!
//! The store of this server has the rows first. So a database that is away loses none: the writer goes on where it was.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use hub::Hub;
use hub::caller::Caller;
use hub::clock::system_now;
use hub::virtual_sensors::{Begin, DatabaseOptions, Extent, FollowRequest, OutputRow, SensorOutput};
use tokio::task::JoinHandle;

use super::limits::{HISTORY_INTERVAL, HISTORY_ROWS_OVER_MIN};
use super::{Database, DatabaseError, Pools, Table};
use crate::follower::{Sink, follow};

/// The name of the follower of a sensor that writes its storage.
const FOLLOWER: &str = "storage";

/// Keeps a writer for each sensor with a storage, as sensors are loaded, changed and removed, until the hub is gone.
pub(crate) async fn manage(hub: Arc<Hub>, pools: Arc<Pools>) {
    let caller = Caller::local(hub.registry().default_tenant());
    let mut outputs = match hub.sensor_outputs(&caller) {
        Ok(outputs) => outputs,
        Err(error) => return tracing::error!(%error, "no storage of a virtual sensor is written"),
    };
    let mut writers: HashMap<String, (Arc<SensorOutput>, JoinHandle<()>)> = HashMap::new();
    loop {
        let wanted = Arc::clone(&outputs.borrow_and_update());
        let is_wanted = |output: &Arc<SensorOutput>| wanted.iter().any(|wanted| wanted == output);
        let ended: Vec<_> = writers.extract_if(|_, (output, _)| !is_wanted(output)).collect();
        for (_, (_, writer)) in ended {
            writer.abort();
            // Two writers of one sensor would move one cursor. An aborted task ends with an error.
            drop(writer.await);
        }
        for output in wanted.iter().filter(|output| output.storage.is_some()) {
            if !writers.contains_key(&output.sensor) {
                let writer = write(Arc::clone(&hub), Arc::clone(&pools), Arc::clone(output));
                writers.insert(output.sensor.clone(), (Arc::clone(output), tokio::spawn(writer)));
            }
        }
        if outputs.changed().await.is_err() {
            return;
        }
    }
}

async fn write(hub: Arc<Hub>, pools: Arc<Pools>, output: Arc<SensorOutput>) {
    let Some(options) = &output.storage else { return };
    let request = FollowRequest {
        sensor: output.sensor.clone(),
        follower: FOLLOWER.to_owned(),
        target: format!("{}, table {}", options.address, output.sensor),
        begin: Begin::Oldest,
    };
    let writer = Writer::new(&pools, options, &output.sensor, &output, output.history);
    follow(hub, request, writer).await;
}

/// Writes the rows of a sensor into its table.
pub(crate) struct Writer {
    database: Result<Arc<Database>, String>,
    table: Result<Table, String>,
    history: Option<Extent>,
    /// Rows since the last deletion.
    written: usize,
    trimmed: Option<Instant>,
}

impl Sink for Writer {
    async fn prepare(&mut self) -> Result<(), String> {
        let (database, table) = self.parts()?;
        database.ensure_table(table).await.map_err(|error| error.to_string())
    }

    async fn write(&mut self, rows: &[OutputRow]) -> Result<(), String> {
        let (database, table) = self.parts()?;
        write_rows(database, table, rows).await.map_err(|error| error.to_string())?;
        self.written += rows.len();
        self.trim().await.map_err(|error| error.to_string())
    }
}

impl Writer {
    /// A writer of the rows of a sensor into a table, which keeps a history if one is given.
    pub(crate) fn new(
        pools: &Pools,
        options: &DatabaseOptions,
        table: &str,
        output: &SensorOutput,
        history: Option<Extent>,
    ) -> Self {
        let table = Table::new(table, output.has_unique_timestamps, &output.fields);
        let database = pools.get(options).map_err(|error| error.to_string());
        Self { database, table, history, written: 0, trimmed: None }
    }

    fn parts(&self) -> Result<(&Database, &Table), String> {
        Ok((self.database.as_deref().map_err(Clone::clone)?, self.table.as_ref().map_err(Clone::clone)?))
    }

    /// Deletes the rows that the history does not keep.
    async fn trim(&mut self) -> Result<(), DatabaseError> {
        let (Ok(database), Ok(table), Some(history)) = (&self.database, &self.table, self.history) else {
            return Ok(());
        };
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

/// Writes rows. If the database refuses the values of some of them, the others are written; the refused ones stay in the store of this
/// server only.
async fn write_rows(database: &Database, table: &Table, rows: &[OutputRow]) -> Result<(), DatabaseError> {
    match database.write_rows(table, rows).await {
        Err(error) if error.is_of_data => {}
        done => return done,
    }
    for row in rows {
        match database.write_rows(table, std::slice::from_ref(row)).await {
            Err(error) if error.is_of_data => {
                tracing::warn!(timed_us = row.us, %error, "a row of a virtual sensor is not in its storage");
            }
            done => done?,
        }
    }
    Ok(())
}
