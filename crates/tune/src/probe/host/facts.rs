//! The facts of the host.

use std::collections::BTreeMap;

use super::files::HostFiles;
use crate::value::Value;

/// Reads the facts. A fact that cannot be read is missing.
pub(super) fn read(files: &dyn HostFiles) -> BTreeMap<String, Value> {
    let text = |path: &str| files.read(path).unwrap_or_default();
    let number = |path: &str| text(path).trim().parse::<f64>().ok();
    let total = kibibytes(&text("/proc/meminfo"), "MemTotal:");
    let limit = number("/sys/fs/cgroup/memory.max");
    let memory_bytes = total.map(|total| limit.map_or(total, |limit| limit.min(total)));
    let processors = text("/proc/stat").lines().filter(|line| is_numbered(line, "cpu")).count();
    let nodes =
        files.list("/sys/devices/system/node").iter().filter(|name| is_numbered(name, "node")).count();
    let sources = text("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    let has_tsc = sources.split_whitespace().any(|source| source == "tsc");
    let facts = [
        ("memory_bytes", memory_bytes.map(Value::Number)),
        ("swap_bytes", swap(&text("/proc/swaps")).map(Value::Number)),
        ("cores", (processors > 0).then_some(Value::Number(processors as f64))),
        // A kernel without NUMA has no such directory and one node.
        ("numa_nodes", Some(Value::Number(nodes.max(1) as f64))),
        ("local_ports", ports(&text("/proc/sys/net/ipv4/ip_local_port_range")).map(Value::Number)),
        ("conntrack_entries", number("/proc/sys/net/netfilter/nf_conntrack_count").map(Value::Number)),
        ("tsc_available", (!sources.is_empty()).then_some(Value::Boolean(has_tsc))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Whether a text begins with that name and a digit.
fn is_numbered(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A line of `/proc/meminfo` in bytes.
fn kibibytes(memory: &str, name: &str) -> Option<f64> {
    let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
    let number: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number * 1_024.0)
}

/// The bytes of all swap areas that are on disks. Compressed memory (zram) is left out: a page in it costs no wait for a disk.
fn swap(areas: &str) -> Option<f64> {
    let mut lines = areas.lines();
    lines.next()?;
    let on_disks = lines.filter(|line| !line.starts_with("/dev/zram"));
    let sizes = on_disks.filter_map(|line| line.split_whitespace().nth(2)?.parse::<f64>().ok());
    Some(sizes.sum::<f64>() * 1_024.0)
}

/// The number of ports from the first to the last.
fn ports(range: &str) -> Option<f64> {
    let (first, last) = range.trim().split_once(|c: char| c.is_whitespace())?;
    let number = |text: &str| text.trim().parse::<f64>().ok();
    Some(number(last)? - number(first)? + 1.0)
}
