//! The server's own counters, and whether they agree with ours.

use std::collections::BTreeMap;
use std::time::Duration;

use super::address::{Address, Dialect};
use super::client::Client;
use super::link::SqlError;
use super::session::StatementCounts;

/// Longest wait for an answer: counters are read each second.
const SILENCE: Duration = Duration::from_secs(10);
const MYSQL: &str = "SHOW GLOBAL STATUS";
const POSTGRES: &str = "SELECT to_jsonb(s) - 'datname' - 'stats_reset' - 'datid' - 'checksum_last_failure' \
     FROM pg_stat_database s WHERE datname = current_database()";

/// A connection of its own that reads counters.
#[derive(Debug)]
pub struct ServerCounters {
    client: Client,
    dialect: Dialect,
}

impl ServerCounters {
    /// Connects.
    pub fn connect(address: &Address) -> Result<Self, SqlError> {
        Ok(Self { client: Client::connect(address, SILENCE)?, dialect: address.dialect })
    }

    /// All counters that are numbers. PostgreSQL's are those of the database and come up to a second late.
    pub fn read(&mut self) -> Result<BTreeMap<String, f64>, SqlError> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        match self.dialect {
            Dialect::Mysql => {
                let rows = self.client.rows(MYSQL)?;
                Ok(rows
                    .into_iter()
                    .filter_map(|row| {
                        let mut columns = row.into_iter().flatten();
                        Some((columns.next()?, number(&columns.next()?)?))
                    })
                    .collect())
            }
            Dialect::Postgres => {
                let rows = self.client.rows(POSTGRES)?;
                let text = rows.into_iter().flatten().flatten().next().unwrap_or_default();
                let read: BTreeMap<String, serde_json::Value> =
                    serde_json::from_str(&text).unwrap_or_default();
                Ok(read.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect())
            }
        }
    }

    /// The version of the server as it says it.
    pub fn version(&mut self) -> Result<String, SqlError> {
        let rows = self.client.rows("SELECT version()")?;
        Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default())
    }
}

/// Compares the server's statement counters with what was sent between two readings. MySQL counts statements; it is
/// exact when nobody else uses the server. Returns what does not agree.
pub fn check_statements(
    before: &BTreeMap<String, f64>,
    after: &BTreeMap<String, f64>,
    sent: &StatementCounts,
) -> Vec<String> {
    let delta = |name: &str| {
        let value = |of: &BTreeMap<String, f64>| of.get(name).copied().unwrap_or(0.0);
        (value(after) - value(before)) as u64
    };
    let writes: u64 = ["Com_update", "Com_delete", "Com_insert"].into_iter().map(delta).sum();
    let control: u64 = ["Com_begin", "Com_commit", "Com_rollback"].into_iter().map(delta).sum();
    let mut wrong = Vec::new();
    for (what, server, ours) in [
        ("SELECTs", delta("Com_select"), sent.read),
        ("writes and transaction statements", writes + control, sent.write + sent.other),
    ] {
        if server != ours {
            wrong.push(format!("the server counted {server} {what}, {ours} were sent"));
        }
    }
    wrong
}
