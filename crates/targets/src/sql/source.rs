//! The server's own counters as a source of samples: MySQL's status, PostgreSQL's database statistics.

use clients::sql::{Address, Dialect};
use load::sampling::ValueKind::{Counter, Gauge};
use load::sampling::{Readings, Source, ValueKind};

use super::counters::ServerCounters;

/// MySQL, MariaDB or PostgreSQL, over a separate connection.
#[derive(Debug)]
pub(crate) struct Database {
    address: Address,
    counters: Option<ServerCounters>,
}

impl Database {
    /// Connects at the first reading, and again after a failure.
    pub(crate) fn new(address: Address) -> Self {
        Self { address, counters: None }
    }
}

impl Source for Database {
    fn prefix(&self) -> &str {
        match self.address.dialect {
            Dialect::Mysql => "mysql",
            Dialect::Postgres => "postgres",
        }
    }

    fn read(&mut self) -> Result<Readings, String> {
        let connected = match self.counters.take() {
            Some(counters) => Ok(counters),
            None => ServerCounters::connect(&self.address),
        };
        let mut counters = connected.map_err(|error| error.to_string())?;
        let values = counters.read().map_err(|error| error.to_string())?;
        self.counters = Some(counters);
        let dialect = self.address.dialect;
        let kept = |(name, value): (String, f64)| {
            let kind = match dialect {
                Dialect::Mysql => mysql_kind(&name)?,
                Dialect::Postgres if name == "numbackends" => Gauge,
                Dialect::Postgres => Counter,
            };
            Some((name, kind, value))
        };
        Ok(values.into_iter().filter_map(kept).collect())
    }
}

/// The kind of those of MySQL's 500 variables that explain a change of throughput or latency; `None` for the others.
fn mysql_kind(name: &str) -> Option<ValueKind> {
    const GAUGES: [&str; 12] = [
        "Threads_connected",
        "Threads_running",
        "Open_tables",
        "Innodb_buffer_pool_pages_dirty",
        "Innodb_buffer_pool_pages_free",
        "Innodb_buffer_pool_pages_data",
        "Innodb_row_lock_current_waits",
        "Innodb_checkpoint_age",
        "Innodb_history_list_length",
        "Innodb_data_pending_fsyncs",
        "Innodb_os_log_pending_fsyncs",
        "Memory_used",
    ];
    const COUNTERS: [&str; 36] = [
        "Questions",
        "Com_select",
        "Com_insert",
        "Com_update",
        "Com_delete",
        "Com_commit",
        "Com_rollback",
        "Com_begin",
        "Com_stmt_prepare",
        "Com_stmt_execute",
        "Connections",
        "Aborted_clients",
        "Aborted_connects",
        "Bytes_received",
        "Bytes_sent",
        "Created_tmp_tables",
        "Created_tmp_disk_tables",
        "Handler_read_key",
        "Handler_read_next",
        "Handler_read_rnd_next",
        "Innodb_buffer_pool_read_requests",
        "Innodb_buffer_pool_reads",
        "Innodb_buffer_pool_wait_free",
        "Innodb_buffer_pool_pages_flushed",
        "Innodb_data_fsyncs",
        "Innodb_data_read",
        "Innodb_data_written",
        "Innodb_deadlocks",
        "Innodb_log_waits",
        "Innodb_os_log_written",
        "Innodb_os_log_fsyncs",
        "Innodb_row_lock_time",
        "Innodb_row_lock_waits",
        "Innodb_rows_read",
        "Sort_merge_passes",
        "Table_locks_waited",
    ];
    if COUNTERS.contains(&name) { Some(Counter) } else { GAUGES.contains(&name).then_some(Gauge) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mysqls_variables_are_chosen() {
        assert_eq!(mysql_kind("Com_select"), Some(Counter));
        assert_eq!(mysql_kind("Threads_running"), Some(Gauge));
        assert_eq!(mysql_kind("Ssl_version"), None);
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let mut database = Database::new(Address::parse("mysql://127.0.0.1:1/").unwrap());
        assert!(database.read().unwrap_err().contains("nobody listens"));
    }
}
