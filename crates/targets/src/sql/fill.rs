//! Fills, checks and drops the tables.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clients::sql::{Address, Client, SqlError};
use load::dataset::{Random, Sampler, digits};

use super::session::{INSERT_BYTES, ROW_DOMAIN};
use super::tables::{Tables, is_missing, last_id};

/// The longest wait for one statement while tables are filled: an index over many rows takes long.
const SILENCE: Duration = Duration::from_secs(3_600);
/// An upper bound for the length of a row in an INSERT: two numbers, 119 and 59 digits, signs.
const ROW_BYTES: usize = 256;

/// The progress of a load.
#[derive(Debug, Default)]
pub struct LoadProgress {
    rows: AtomicU64,
    tables: AtomicU32,
    stop: AtomicBool,
}

impl LoadProgress {
    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The number of complete tables, including indexes.
    pub fn tables(&self) -> u32 {
        self.tables.load(Ordering::Relaxed)
    }

    /// Asks the load to end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Creates and fills all tables with `connections` connections, each table by one of them: rows in INSERTs of up to 512
/// KiB, indexes after the rows. A row depends on (seed, table, id) alone.
pub(super) fn load(
    address: &Address,
    tables: &Tables,
    rows: u32,
    seed: u64,
    connections: u32,
    loaded: &LoadProgress,
) -> Result<(), SqlError> {
    let next = AtomicU32::new(1);
    let ids = tables.distribution.over(1, tables.table_size.into());
    let worker = || -> Result<(), SqlError> {
        let mut client = Client::connect(address, SILENCE)?;
        loop {
            let table = next.fetch_add(1, Ordering::Relaxed);
            if table > tables.tables || loaded.stop.load(Ordering::Relaxed) {
                client.quit();
                return Ok(());
            }
            Filler { client: &mut client, address, tables, ids: &ids, rows, seed, table }.fill(loaded)?;
            loaded.tables.fetch_add(1, Ordering::Relaxed);
        }
    };
    let workers = connections.clamp(1, tables.tables);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        handles.into_iter().try_for_each(|handle| handle.join().expect("BUG: a loader panicked"))
    })
}

struct Filler<'a> {
    client: &'a mut Client,
    address: &'a Address,
    tables: &'a Tables,
    ids: &'a Sampler,
    rows: u32,
    seed: u64,
    table: u32,
}

impl Filler<'_> {
    fn fill(&mut self, loaded: &LoadProgress) -> Result<(), SqlError> {
        let create = self.tables.create(self.address.dialect, self.table);
        self.client.run(create.as_bytes()).map_err(|error| self.exists(error))?;
        let mut text = Vec::with_capacity(INSERT_BYTES);
        let mut written = 0;
        for id in 1..=self.rows {
            if text.is_empty() {
                self.head(&mut text);
            } else {
                text.push(b',');
            }
            self.row(id, &mut text);
            written += 1;
            if text.len() + ROW_BYTES > INSERT_BYTES || id == self.rows {
                self.client.run(&text)?;
                text.clear();
                loaded.rows.fetch_add(std::mem::take(&mut written), Ordering::Relaxed);
                if loaded.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
        for index in self.tables.indexes(self.address.dialect, self.table) {
            self.client.run(index.as_bytes())?;
        }
        Ok(())
    }

    fn exists(&self, error: SqlError) -> SqlError {
        match error {
            SqlError::Refused { code, .. } if code == "1050" || code == "42P07" => SqlError::Refused {
                code,
                message: format!(
                    "table sbtest{} is there already in {}; drop the tables first or run on them as they are",
                    self.table,
                    self.address.without_password()
                ),
            },
            other => other,
        }
    }

    fn head(&self, text: &mut Vec<u8>) {
        let columns = if self.tables.auto_inc { "k, c, pad" } else { "id, k, c, pad" };
        write!(text, "INSERT INTO sbtest{}({columns}) VALUES", self.table)
            .expect("BUG: writing to memory cannot fail");
    }

    fn row(&self, id: u32, text: &mut Vec<u8>) {
        let mut random = Random::keyed(self.seed, ROW_DOMAIN + u64::from(self.table), id.into());
        let k = self.ids.sample(&mut random);
        let written =
            if self.tables.auto_inc { write!(text, "({k}, '") } else { write!(text, "({id}, {k}, '") };
        written.expect("BUG: writing to memory cannot fail");
        digits(&mut random, 10, text);
        text.extend_from_slice(b"', '");
        digits(&mut random, 5, text);
        text.extend_from_slice(b"')");
    }
}

/// Creates the tables of `bulk_insert`, one per connection.
pub(super) fn create_bulk(address: &Address, connections: u32) -> Result<(), SqlError> {
    let mut client = Client::connect(address, SILENCE)?;
    for table in 1..=connections {
        let text = format!(
            "CREATE TABLE IF NOT EXISTS sbtest{table} (id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id))"
        );
        client.run(text.as_bytes())?;
    }
    client.quit();
    Ok(())
}

/// Drops the tables, if they exist.
pub(super) fn clean_up(address: &Address, tables: u32) -> Result<(), SqlError> {
    let mut client = Client::connect(address, SILENCE)?;
    for table in 1..=tables {
        client.run(format!("DROP TABLE IF EXISTS sbtest{table}").as_bytes())?;
    }
    client.quit();
    Ok(())
}

/// The reason why the tables cannot be used: the first one that is missing or has too few rows.
pub(super) fn missing(address: &Address, tables: &Tables, rows: u32) -> Result<Option<String>, SqlError> {
    let mut client = Client::connect(address, SILENCE)?;
    for table in 1..=tables.tables {
        match last_id(&mut client, table) {
            Ok(last) => {
                if last < i64::from(rows) {
                    return Ok(Some(format!(
                        "table sbtest{table} ends at id {last}, but ids up to {rows} will be asked for"
                    )));
                }
            }
            Err(error) if error.code().is_some_and(is_missing) => {
                return Ok(Some(format!("there is no table sbtest{table}")));
            }
            Err(error) => return Err(error),
        }
    }
    client.quit();
    Ok(None)
}
