//! The counters of the host.

use std::collections::BTreeMap;

use super::files::HostFiles;

/// Reads all counters, and the time since the host has started in seconds. A counter that the kernel does not have is missing.
pub(super) fn read(files: &dyn HostFiles) -> (BTreeMap<String, f64>, Option<f64>) {
    let text = |path: &str| files.read(path).unwrap_or_default();
    let mut values = BTreeMap::new();
    pairs_of_lines(&text("/proc/net/netstat"), &mut values);
    for line in text("/proc/vmstat").lines() {
        if let Some((name, value)) = line.split_once(' ') {
            values.extend(value.trim().parse().ok().map(|value: f64| (name.to_owned(), value)));
        }
    }
    let dropped = hexadecimal_column(&text("/proc/net/softnet_stat"), 0, |_| Some(1));
    values.extend(dropped.map(|sum| ("softnet_dropped".to_owned(), sum)));
    let position = |header: &str| header.split_whitespace().position(|name| name == "drop");
    let drops = hexadecimal_column(&text("/proc/net/stat/nf_conntrack"), 1, position);
    values.extend(drops.map(|sum| ("conntrack_drop".to_owned(), sum)));
    let uptime_s = text("/proc/uptime").split_whitespace().next().and_then(|seconds| seconds.parse().ok());
    (values, uptime_s)
}

/// Reads pairs of lines: `TcpExt: name name` and `TcpExt: value value`.
fn pairs_of_lines(text: &str, values: &mut BTreeMap<String, f64>) {
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let names = pair[0].split_whitespace().skip(1);
        let numbers = pair[1].split_whitespace().skip(1);
        for (name, number) in names.zip(numbers) {
            values.extend(number.parse().ok().map(|number: f64| (name.to_owned(), number)));
        }
    }
}

/// The sum of a column of hexadecimal numbers, one line for each processor. `column` finds it in the first line.
fn hexadecimal_column(
    text: &str,
    header_lines: usize,
    column: impl Fn(&str) -> Option<usize>,
) -> Option<f64> {
    let column = column(text.lines().next()?)?;
    let cells = text.lines().skip(header_lines).filter_map(|line| line.split_whitespace().nth(column));
    Some(cells.filter_map(|cell| u64::from_str_radix(cell, 16).ok()).sum::<u64>() as f64)
}
