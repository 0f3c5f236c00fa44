//! The machine: its load, steal time, and the waiting times of tasks.

use std::fs;

use super::ValueKind::{Counter, Gauge, Share};
use super::{Readings, Source};

/// This machine, from `/proc/stat`, `/proc/loadavg` and `/proc/pressure`.
#[derive(Debug, Clone, Copy)]
pub struct Host;

impl Source for Host {
    fn prefix(&self) -> &str {
        "host"
    }

    fn read(&mut self) -> Result<Readings, String> {
        let stat = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        let mut readings = processors(&stat, ticks_per_second);
        for (file, name) in [("cpu", "cpu"), ("io", "io"), ("memory", "memory")] {
            // A kernel without pressure information has no such file.
            if let Ok(text) = fs::read_to_string(format!("/proc/pressure/{file}"))
                && let Some(total_us) = pressure(&text)
            {
                readings.push((format!("{name}_pressure_percent"), Share, total_us / 1e4));
            }
        }
        if let Some(load) = fs::read_to_string("/proc/loadavg")
            .ok()
            .and_then(|text| text.split_whitespace().next().and_then(|first| first.parse().ok()))
        {
            readings.push(("load".to_owned(), Gauge, load));
        }
        Ok(readings)
    }
}

/// The shares of all processors' time as growing percentages; their growth per second is the share.
fn processors(stat: &str, ticks_per_second: f64) -> Readings {
    let is_core = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let cores = stat.lines().filter(is_core).count().max(1) as f64;
    let numbers =
        |line: &str| -> Vec<f64> { line.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect() };
    let mut readings = Vec::new();
    if let Some(ticks) = stat.lines().find(|line| line.starts_with("cpu ")).map(numbers)
        && ticks.len() >= 8
    {
        let percent = |ticks: f64| ticks / ticks_per_second / cores * 100.0;
        // user nice system idle iowait irq softirq steal
        let busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
        readings.push(("busy_percent".to_owned(), Share, percent(busy)));
        readings.push(("iowait_percent".to_owned(), Share, percent(ticks[4])));
        readings.push(("steal_percent".to_owned(), Share, percent(ticks[7])));
    }
    if let Some(switches) = stat.lines().find(|line| line.starts_with("ctxt ")).map(numbers) {
        readings.extend(switches.first().map(|count| ("switches".to_owned(), Counter, *count)));
    }
    readings
}

/// The time in which some task waited, microseconds.
fn pressure(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percent_of_all_processors() {
        let stat = "cpu  100 0 50 800 20 0 10 40 0 0\ncpu0 1\ncpu1 1\nctxt 12345\n";
        let readings = processors(stat, 100.0);
        let value = |name: &str| readings.iter().find(|(n, _, _)| n == name).map(|(_, _, v)| *v);
        assert_eq!(value("busy_percent"), Some(80.0), "1.6 s of 2 processors");
        assert_eq!((value("steal_percent"), value("iowait_percent")), (Some(20.0), Some(10.0)));
        assert_eq!(value("switches"), Some(12_345.0));
    }

    #[test]
    fn pressure_is_the_time_some_task_waited() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456\nfull avg10=0.00 total=7\n";
        assert_eq!(pressure(text), Some(123_456.0));
        assert_eq!(pressure(""), None);
    }
}
