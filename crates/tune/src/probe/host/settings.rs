//! The settings of the host.

use std::collections::BTreeMap;

use super::files::HostFiles;
use crate::observation::Group;
use crate::rules::Product;
use crate::value::{Value, ValueKind};

/// Beginnings of parameter names that are files in `/proc/sys`.
const SYSCTL: [&str; 4] = ["fs.", "kernel.", "net.", "vm."];

/// The number of a limit that is `unlimited`.
const UNLIMITED: f64 = 9_223_372_036_854_775_807.0;

/// Reads the settings that the rules of Linux use. A setting that the kernel does not have is missing.
pub(super) fn read(files: &dyn HostFiles, product: &Product) -> BTreeMap<String, Value> {
    let mut settings = BTreeMap::new();
    for (name, parameter) in &product.parameters {
        if SYSCTL.iter().any(|beginning| name.starts_with(beginning)) {
            let text = files.read(&format!("/proc/sys/{}", name.replace('.', "/"))).ok();
            settings.extend(text.and_then(|text| Some((name.clone(), value(&text, parameter.unit.kind())?))));
        }
    }
    let mut add =
        |name: &str, value: Option<Value>| settings.extend(value.map(|value| (name.to_owned(), value)));
    add("transparent_hugepage", chosen(files, "/sys/kernel/mm/transparent_hugepage/enabled"));
    add("clocksource", word(files, "/sys/devices/system/clocksource/clocksource0/current_clocksource"));
    add("cpu.governor", governor(files));
    add("cpu.idle_exit_latency_us", idle_exit_latency(files));
    let limits = files.read("/proc/self/limits").unwrap_or_default();
    add("nofile.soft", limit(&limits, 0));
    add("nofile.hard", limit(&limits, 1));
    settings
}

fn value(text: &str, kind: ValueKind) -> Option<Value> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match kind {
        ValueKind::Number => words.first()?.parse().ok().map(Value::Number),
        ValueKind::Boolean => Some(Value::Boolean(*words.first()? != "0")),
        ValueKind::Text => Some(Value::Text(words.join(" "))),
    }
}

fn word(files: &dyn HostFiles, path: &str) -> Option<Value> {
    let text = files.read(path).ok()?;
    Some(Value::Text(text.trim().to_owned())).filter(|_| !text.trim().is_empty())
}

/// The word in brackets of a file such as `always [madvise] never`.
fn chosen(files: &dyn HostFiles, path: &str) -> Option<Value> {
    let text = files.read(path).ok()?;
    let inner = text.split_once('[')?.1.split_once(']')?.0;
    Some(Value::Text(inner.to_owned()))
}

/// The governor of all processors; if they differ, the first that is not `performance`.
fn governor(files: &dyn HostFiles) -> Option<Value> {
    let directory = "/sys/devices/system/cpu";
    let names = files
        .list(directory)
        .into_iter()
        .filter(|name| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok()));
    let governors =
        names.filter_map(|name| word(files, &format!("{directory}/{name}/cpufreq/scaling_governor")));
    let governors: Vec<Value> = governors.collect();
    let other = governors.iter().find(|governor| **governor != Value::from("performance"));
    other.or(governors.first()).cloned()
}

/// The longest time in which a processor leaves an idle state that is enabled.
fn idle_exit_latency(files: &dyn HostFiles) -> Option<Value> {
    let directory = "/sys/devices/system/cpu/cpu0/cpuidle";
    let number = |state: &str, name: &str| {
        files.read(&format!("{directory}/{state}/{name}")).ok()?.trim().parse::<f64>().ok()
    };
    let states = files.list(directory).into_iter().filter(|state| state.starts_with("state"));
    let enabled = states.filter(|state| number(state, "disable").unwrap_or_default() == 0.0);
    let latencies = enabled.filter_map(|state| number(&state, "latency"));
    latencies.reduce(f64::max).map(Value::Number)
}

/// A column of the line `Max open files` in `/proc/self/limits`: 0 is the soft limit, 1 the hard one.
fn limit(limits: &str, column: usize) -> Option<Value> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().nth(column)? {
        "unlimited" => Some(Value::Number(UNLIMITED)),
        number => number.parse().ok().map(Value::Number),
    }
}

/// The disks with their settings. Loop devices, memory disks and the like are left out: no physical device is behind them.
pub(super) fn block_devices(files: &dyn HostFiles) -> Vec<Group> {
    let disks = files.list("/sys/block").into_iter().filter_map(|name| Some((bus(&name)?, name)));
    let group = |(bus, name): (&str, String)| {
        let queue = |file: &str| format!("/sys/block/{name}/queue/{file}");
        let rotational = files.read(&queue("rotational")).ok().map(|text| Value::Boolean(text.trim() == "1"));
        let settings = [
            ("scheduler", chosen(files, &queue("scheduler"))),
            ("rotational", rotational),
            ("bus", Some(Value::from(bus))),
        ];
        let settings = settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let settings = settings.collect();
        Group { name, settings }
    };
    disks.map(group).collect()
}

/// The bus of a disk, by the name that the kernel gives it.
fn bus(name: &str) -> Option<&'static str> {
    let buses = [("nvme", "nvme"), ("vd", "virtio"), ("xvd", "virtio"), ("sd", "scsi"), ("mmcblk", "mmc")];
    buses.into_iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, bus)| bus)
}
