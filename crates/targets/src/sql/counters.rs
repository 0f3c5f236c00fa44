//! The server's own counters, and their comparison with those of the generator.

use std::collections::BTreeMap;
use std::time::Duration;

use clients::sql::{Address, Client, Dialect, SqlError};

use super::tally::StatementCounts;

/// The longest wait for an answer. Counters are read each second.
const SILENCE: Duration = Duration::from_secs(10);
const MYSQL: &str = "SHOW GLOBAL STATUS";
const POSTGRES: &str = "SELECT to_jsonb(s) - 'datname' - 'stats_reset' - 'datid' - 'checksum_last_failure' \
     FROM pg_stat_database s WHERE datname = current_database()";
/// Calls by the first word of the statement, in this database, of all users, without statements that read statistics.
const POSTGRES_STATEMENTS: &str = "SELECT lower(substring(query from '^[[:space:]]*([a-zA-Z]+)')), sum(calls) FROM pg_stat_statements \
     WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg\\_%' GROUP BY 1";

/// A separate connection that reads counters.
#[derive(Debug)]
pub struct ServerCounters {
    client: Client,
    dialect: Dialect,
}

impl ServerCounters {
    pub fn connect(address: &Address) -> Result<Self, SqlError> {
        Ok(Self { client: Client::connect(address, SILENCE)?, dialect: address.dialect })
    }

    /// All numeric counters. Those of PostgreSQL cover the database and are up to a second late.
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

    /// The statements that the server has counted, under MySQL's names (`Com_select`, ...). PostgreSQL counts them if
    /// the extension `pg_stat_statements` is loaded and created in the database; `None` without it.
    pub fn statements(&mut self) -> Result<Option<BTreeMap<String, f64>>, SqlError> {
        if self.dialect == Dialect::Mysql {
            return self.read().map(Some);
        }
        let rows = match self.client.rows(POSTGRES_STATEMENTS) {
            Ok(rows) => rows,
            // The relation does not exist, the extension is not loaded, or the user may not read it.
            Err(SqlError::Refused { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let pair = |row: Vec<Option<String>>| {
            let mut columns = row.into_iter().flatten();
            Some((format!("Com_{}", columns.next()?), columns.next()?.parse().ok()?))
        };
        Ok(Some(rows.into_iter().filter_map(pair).collect()))
    }

    /// The settings that determine the cost of a commit and the size of memory.
    pub fn settings(&mut self) -> Result<BTreeMap<String, String>, SqlError> {
        let question = match self.dialect {
            Dialect::Mysql => {
                "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_buffer_pool_size', 'innodb_flush_log_at_trx_commit', \
                 'sync_binlog', 'log_bin', 'innodb_flush_method', 'innodb_log_file_size', 'innodb_redo_log_capacity', \
                 'max_connections', 'thread_handling', 'innodb_doublewrite')"
            }
            Dialect::Postgres => {
                "SELECT name, setting || COALESCE(' ' || unit, '') FROM pg_settings WHERE name IN ('shared_buffers', 'fsync', \
                 'synchronous_commit', 'max_wal_size', 'full_page_writes', 'max_connections', 'wal_level', 'commit_delay')"
            }
        };
        let rows = self.client.rows(question)?;
        let pair = |row: Vec<Option<String>>| {
            let mut columns = row.into_iter().flatten();
            Some((columns.next()?, columns.next().unwrap_or_default()))
        };
        Ok(rows.into_iter().filter_map(pair).collect())
    }

    /// The server's version text.
    pub fn version(&mut self) -> Result<String, SqlError> {
        let rows = self.client.rows("SELECT version()")?;
        Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default())
    }
}

/// The composition of a transaction between two readings of MySQL's counters: select : update : delete : insert :
/// commit, per commit, such as `14 : 2 : 1 : 1 : 1`; with the counts if the ratios are not integers.
pub fn ratio(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> String {
    let value = |of: &BTreeMap<String, f64>, name: &str| of.get(name).copied().unwrap_or(0.0) as u64;
    let names = ["Com_select", "Com_update", "Com_delete", "Com_insert", "Com_commit"];
    let counts = names.map(|name| value(after, name).saturating_sub(value(before, name)));
    let commits = counts[4];
    let is_even = commits > 0 && counts.iter().all(|count| count.is_multiple_of(commits));
    let shown = counts.map(|count| if is_even { count / commits } else { count }.to_string());
    shown.join(" : ")
}

/// Compares the server's statement counters with the statements sent between two readings. The comparison is exact if
/// nobody else uses the server. Returns the differences.
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
        ("writes and transaction statements", writes + control, sent.write + sent.other + sent.refused),
    ] {
        if server != ours {
            wrong.push(format!("the server counted {server} {what}, {ours} were sent"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(values: [f64; 6]) -> BTreeMap<String, f64> {
        let names = ["Com_select", "Com_update", "Com_delete", "Com_insert", "Com_commit", "Com_begin"];
        names.into_iter().map(str::to_owned).zip(values).collect()
    }

    #[test]
    fn a_statement_more_or_less_is_noticed() {
        let (before, after) = (counters([1.0; 6]), counters([141.0, 21.0, 11.0, 11.0, 11.0, 11.0]));
        let sent = StatementCounts { read: 140, write: 40, other: 20, ..StatementCounts::default() };
        assert_eq!(check_statements(&before, &after, &sent), Vec::<String>::new());
        assert_eq!(ratio(&before, &after), "14 : 2 : 1 : 1 : 1");
        let wrong = check_statements(&before, &after, &StatementCounts { read: 139, ..sent });
        assert_eq!(wrong, ["the server counted 140 SELECTs, 139 were sent"]);
        assert_eq!(ratio(&before, &counters([2.0; 6])), "1 : 1 : 1 : 1 : 1");
        assert_eq!(ratio(&before, &counters([8.0, 3.0, 3.0, 3.0, 3.0, 3.0])), "7 : 2 : 2 : 2 : 2");
    }
}
