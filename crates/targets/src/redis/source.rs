//! The server's own counters as a source of samples: INFO.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use clients::tls::{Stream, TlsClient};
use load::sampling::ValueKind::{Counter, Gauge};
use load::sampling::{Readings, Source};

/// The longest answer of Redis to INFO.
const INFO_BYTES_MAX: u64 = 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(2);

/// Redis or Valkey.
#[derive(Debug)]
pub(super) struct RedisSource {
    address: SocketAddr,
    tls: Option<TlsClient>,
    user: Option<String>,
    password: Option<String>,
    connection: Option<BufReader<Stream>>,
}

impl RedisSource {
    /// Connects at the first reading, and again after a failure.
    pub(super) fn new(address: SocketAddr, user: Option<String>, password: Option<String>) -> Self {
        Self { address, tls: None, user, password, connection: None }
    }

    /// The same with TLS, if the server has it.
    pub(super) fn with_tls(self, tls: Option<TlsClient>) -> Self {
        Self { tls, ..self }
    }

    fn info(&mut self) -> std::io::Result<String> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        connection.get_mut().write_all(b"*2\r\n$4\r\nINFO\r\n$10\r\neverything\r\n")?;
        let mut head = String::new();
        (&mut connection).take(64).read_line(&mut head)?;
        let bad = |what: &str| std::io::Error::other(format!("{what}: {}", head.trim()));
        let length = head.trim().strip_prefix('$').and_then(|n| n.parse::<u64>().ok());
        let length = length.filter(|n| *n <= INFO_BYTES_MAX).ok_or_else(|| bad("no answer to INFO"))?;
        let mut text = vec![0; length as usize + 2];
        connection.read_exact(&mut text)?;
        self.connection = Some(connection);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn connect(&self) -> std::io::Result<BufReader<Stream>> {
        let mut connection = BufReader::new(Stream::connect(self.address, self.tls.as_ref(), TIMEOUT)?);
        if let Some(password) = &self.password {
            let words: Vec<&str> =
                std::iter::once("AUTH").chain(self.user.as_deref()).chain([&**password]).collect();
            let mut auth = format!("*{}\r\n", words.len());
            words.iter().for_each(|word| auth.push_str(&format!("${}\r\n{word}\r\n", word.len())));
            connection.get_mut().write_all(auth.as_bytes())?;
            let mut answer = String::new();
            (&mut connection).take(512).read_line(&mut answer)?;
            if !answer.starts_with('+') {
                return Err(std::io::Error::other(format!("the password was refused: {}", answer.trim())));
            }
        }
        Ok(connection)
    }
}

impl Source for RedisSource {
    fn prefix(&self) -> &str {
        "redis"
    }

    fn read(&mut self) -> Result<Readings, String> {
        let text = self.info().map_err(|error| format!("{}: {error}", self.address))?;
        Ok(info(&text))
    }
}

/// The lines of INFO that explain a change of throughput or latency, and the calls of each command.
fn info(text: &str) -> Readings {
    const COUNTERS: [&str; 13] = [
        "total_commands_processed",
        "total_connections_received",
        "total_net_input_bytes",
        "total_net_output_bytes",
        "keyspace_hits",
        "keyspace_misses",
        "expired_keys",
        "evicted_keys",
        "used_cpu_sys",
        "used_cpu_user",
        "total_forks",
        "aof_delayed_fsync",
        "rejected_connections",
    ];
    const GAUGES: [&str; 9] = [
        "used_memory",
        "used_memory_rss",
        "used_memory_dataset",
        "connected_clients",
        "blocked_clients",
        "mem_fragmentation_ratio",
        "aof_current_size",
        "aof_rewrite_in_progress",
        "rdb_bgsave_in_progress",
    ];
    let mut readings = Vec::new();
    for (name, value) in text.lines().filter_map(|line| line.trim().split_once(':')) {
        if let Some(command) = name.strip_prefix("cmdstat_") {
            let calls = value.split(',').find_map(|part| part.strip_prefix("calls="));
            readings
                .extend(calls.and_then(|n| n.parse().ok()).map(|n| (format!("calls_{command}"), Counter, n)));
            continue;
        }
        let Ok(number) = value.parse::<f64>() else { continue };
        if COUNTERS.contains(&name) {
            readings.push((name.to_owned(), Counter, number));
        } else if GAUGES.contains(&name) {
            readings.push((name.to_owned(), Gauge, number));
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_has_counters_gauges_and_calls() {
        let text = "# Memory\r\nused_memory:1024\r\nused_memory_human:1K\r\nkeyspace_hits:7\r\n\
                    cmdstat_get:calls=12,usec=3,usec_per_call=0.25\r\n";
        let expected =
            [("used_memory", Gauge, 1024.0), ("keyspace_hits", Counter, 7.0), ("calls_get", Counter, 12.0)];
        let expected: Readings = expected.map(|(name, kind, value)| (name.to_owned(), kind, value)).into();
        assert_eq!(info(text), expected);
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let mut redis = RedisSource::new("127.0.0.1:1".parse().unwrap(), None, None);
        assert!(redis.read().unwrap_err().contains("127.0.0.1:1"));
    }
}
