//! The figures that PerformanceEvaluation would print for the same operations.
//!
//! It divides the rows of each client by the client's own time and adds the quotients, and it averages the mean latencies
//! of its clients (`PerformanceEvaluation.doLocalClients`). The sum of rates is above rows per second where clients end at
//! different times, and the mean of means weighs a client with few calls as much as others. With a client buffer it times
//! each put, most of which only enter the buffer.

use std::time::{Duration, Instant};

/// The operations of one client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PeClient {
    span: Option<(Instant, Instant)>,
    rows: u64,
    /// The number of latencies that PerformanceEvaluation would have, and their sum.
    timed: u64,
    took: Duration,
}

impl PeClient {
    /// Adds an operation of `rows` rows. `is_buffered` states that PerformanceEvaluation times each row.
    pub(super) fn add(&mut self, (began, ended): (Instant, Instant), rows: u64, is_buffered: bool) {
        let first = self.span.map_or(began, |(first, _)| first);
        self.span = Some((first, ended));
        self.rows += rows;
        self.timed += if is_buffered { rows } else { 1 };
        self.took += ended - began;
    }
}

/// The figures of all clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PeFigures {
    /// `Avg TPS/QPS`, rows per second.
    pub(super) rows_per_s: f64,
    /// `Avg latency`, microseconds.
    pub(super) latency_us: f64,
    /// The same rows by the time from the first operation to the last: the true rate, rows per second.
    pub(super) true_rows_per_s: f64,
}

/// Calculates the figures; `None` without rows.
pub(super) fn figures<'a>(clients: impl Iterator<Item = &'a PeClient>) -> Option<PeFigures> {
    let clients: Vec<(&PeClient, (Instant, Instant))> =
        clients.filter_map(|client| Some((client, client.span?))).collect();
    let first = clients.iter().map(|(_, (first, _))| *first).min()?;
    let last = clients.iter().map(|(_, (_, last))| *last).max()?;
    let rate = |rows: u64, time: Duration| rows as f64 / time.as_secs_f64().max(1e-3);
    let rows = clients.iter().map(|(client, _)| client.rows).sum();
    let mean = |client: &PeClient| client.took.as_secs_f64() * 1e6 / client.timed.max(1) as f64;
    Some(PeFigures {
        rows_per_s: clients.iter().map(|(client, (first, last))| rate(client.rows, *last - *first)).sum(),
        latency_us: clients.iter().map(|(client, _)| mean(client)).sum::<f64>() / clients.len() as f64,
        true_rows_per_s: rate(rows, last - first),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_added_and_means_averaged() {
        let at = Instant::now();
        let after = |ms| at + Duration::from_millis(ms);
        let (mut fast, mut slow) = (PeClient::default(), PeClient::default());
        fast.add((at, after(500)), 50, false);
        fast.add((after(500), after(1_000)), 50, false);
        slow.add((at, after(2_000)), 100, false);
        let figures = figures([&fast, &slow, &PeClient::default()].into_iter()).unwrap();
        assert_eq!(figures.rows_per_s, 100.0 + 50.0);
        assert_eq!(figures.latency_us, f64::midpoint(500_000.0, 2_000_000.0));
        assert_eq!(figures.true_rows_per_s, 100.0, "200 rows in 2 s");
        assert_eq!(super::figures([PeClient::default()].iter()), None);
    }

    #[test]
    fn puts_that_enter_a_buffer_are_timed() {
        let at = Instant::now();
        let mut client = PeClient::default();
        client.add((at, at + Duration::from_millis(100)), 1_000, true);
        assert_eq!(figures([client].iter()).unwrap().latency_us, 100.0);
    }
}
