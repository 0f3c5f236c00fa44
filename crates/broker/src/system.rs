//! The report of the broker's counters, with mosquitto's names. It reads no clock and counts nothing.

use std::sync::Arc;
use std::time::Duration;

use super::message::Message;

/// Counters since the start, of which the report has averages too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) packets_received: u64,
    pub(super) packets_sent: u64,
    pub(super) publishes_received: u64,
    pub(super) publishes_sent: u64,
    pub(super) publishes_dropped: u64,
    pub(super) bytes_received: u64,
    pub(super) bytes_sent: u64,
    pub(super) sockets: u64,
}

/// The state of the broker at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) connected: u64,
    pub(super) connected_max: u64,
    pub(super) disconnected: u64,
    pub(super) subscriptions: u64,
    pub(super) retained: u64,
}

/// The report of the last interval, and what the next one needs of the earlier ones.
#[derive(Debug, Default)]
pub(super) struct SystemReport {
    /// What was published last.
    pub(super) messages: Vec<Arc<Message>>,
    loads: Loads,
}

/// The times over which loads are averaged, by their names.
const SPANS: [(&str, f64); 3] = [("1min", 60.0), ("5min", 300.0), ("15min", 900.0)];

/// Averages of what happens in a minute. Those of earlier intervals fade exponentially, as in mosquitto.
#[derive(Debug, Default)]
struct Loads {
    last: Totals,
    last_uptime: Duration,
    averages: [[f64; SPANS.len()]; Totals::NAMES.len()],
}

impl Totals {
    /// The names of the loads, in the order of [`values`](Self::values).
    const NAMES: [&'static str; 8] = [
        "messages/received",
        "messages/sent",
        "publish/received",
        "publish/sent",
        "publish/dropped",
        "bytes/received",
        "bytes/sent",
        "sockets",
    ];

    fn values(&self) -> [u64; Self::NAMES.len()] {
        [
            self.packets_received,
            self.packets_sent,
            self.publishes_received,
            self.publishes_sent,
            self.publishes_dropped,
            self.bytes_received,
            self.bytes_sent,
            self.sockets,
        ]
    }
}

impl Loads {
    fn add(&mut self, totals: Totals, uptime: Duration) {
        let elapsed_s = uptime.saturating_sub(self.last_uptime).as_secs_f64();
        if elapsed_s <= 0.0 {
            return;
        }
        let counts = totals.values().into_iter().zip(self.last.values());
        for ((now, before), averages) in counts.zip(&mut self.averages) {
            let per_minute = now.saturating_sub(before) as f64 * 60.0 / elapsed_s;
            for (average, (_, span_s)) in averages.iter_mut().zip(SPANS) {
                *average = per_minute + (-elapsed_s / span_s).exp() * (*average - per_minute);
            }
        }
        (self.last, self.last_uptime) = (totals, uptime);
    }
}

impl SystemReport {
    /// The topics below `$SYS/broker/` and their values, after another interval.
    pub(super) fn next(&mut self, sizes: Sizes, totals: Totals, uptime: Duration) -> Vec<(String, String)> {
        self.loads.add(totals, uptime);
        let mut report = vec![
            ("version".to_owned(), concat!("tachograph version ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("uptime".to_owned(), format!("{} seconds", uptime.as_secs())),
        ];
        let numbers = [
            ("clients/connected", sizes.connected),
            ("clients/disconnected", sizes.disconnected),
            ("clients/total", sizes.connected + sizes.disconnected),
            ("clients/maximum", sizes.connected_max),
            ("subscriptions/count", sizes.subscriptions),
            ("retained messages/count", sizes.retained),
            ("messages/received", totals.packets_received),
            ("messages/sent", totals.packets_sent),
            ("publish/messages/received", totals.publishes_received),
            ("publish/messages/sent", totals.publishes_sent),
            ("publish/messages/dropped", totals.publishes_dropped),
            ("bytes/received", totals.bytes_received),
            ("bytes/sent", totals.bytes_sent),
        ];
        report.extend(numbers.map(|(name, number)| (name.to_owned(), number.to_string())));
        for (name, averages) in Totals::NAMES.iter().zip(&self.loads.averages) {
            let of_span = |((span, _), average): ((&str, f64), &f64)| {
                (format!("load/{name}/{span}"), format!("{average:.2}"))
            };
            report.extend(SPANS.into_iter().zip(averages).map(of_span));
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(report: &[(String, String)], topic: &str) -> String {
        let found = report.iter().find(|(name, _)| name == topic);
        found.unwrap_or_else(|| panic!("{topic} is missing")).1.clone()
    }

    #[test]
    fn a_report_has_sizes_totals_and_the_time() {
        let sizes = Sizes { connected: 3, connected_max: 5, disconnected: 2, subscriptions: 7, retained: 11 };
        let totals = Totals { packets_received: 100, publishes_sent: 40, ..Totals::default() };
        let report = SystemReport::default().next(sizes, totals, Duration::from_millis(90_900));
        for (topic, expected) in [
            ("uptime", "90 seconds"),
            ("version", concat!("tachograph version ", env!("CARGO_PKG_VERSION"))),
            ("clients/connected", "3"),
            ("clients/disconnected", "2"),
            ("clients/total", "5"),
            ("clients/maximum", "5"),
            ("subscriptions/count", "7"),
            ("retained messages/count", "11"),
            ("messages/received", "100"),
            ("publish/messages/sent", "40"),
            ("bytes/sent", "0"),
        ] {
            assert_eq!(value(&report, topic), expected, "{topic}");
        }
    }

    /// A constant rate is the average of every span in the end, whatever the intervals are, and a pause lets it fade.
    #[test]
    fn loads_approach_the_rate_of_a_minute() {
        let mut report = SystemReport::default();
        let mut take = |packets: u64, uptime_s: u64| {
            let totals = Totals { packets_received: packets, ..Totals::default() };
            report.next(Sizes::default(), totals, Duration::from_secs(uptime_s))
        };
        // Two packets a second, in intervals of 10 and of 35 seconds.
        let first = take(20, 10);
        // 120 a minute * (1 - e^(-10/60)).
        assert_eq!(value(&first, "load/messages/received/1min"), "18.42");
        assert_eq!(value(&first, "load/messages/sent/1min"), "0.00");
        let mut last = first;
        for uptime_s in (45..10_000).step_by(35) {
            last = take(2 * uptime_s, uptime_s);
        }
        for span in ["1min", "5min", "15min"] {
            assert_eq!(value(&last, &format!("load/messages/received/{span}")), "120.00");
        }
        let packets = 2 * (45 + (10_000 - 1 - 45) / 35 * 35);
        let silent = take(packets, 45 + (10_000 - 1 - 45) / 35 * 35 + 60);
        // 120 * e^-1 and 120 * e^(-1/5).
        assert_eq!(value(&silent, "load/messages/received/1min"), "44.15");
        assert_eq!(value(&silent, "load/messages/received/5min"), "98.25");
    }
}
