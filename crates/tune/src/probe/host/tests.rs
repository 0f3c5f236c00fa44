//! Tests of the probe over a directory.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{HostProbe, HostRoot};
use crate::expression::Increase;
use crate::observation::Observation;
use crate::probe::observe::observe;
use crate::rules::Product;
use crate::target::HostRole;
use crate::value::Value;

const FILES: [(&str, &str); 25] = [
    ("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"),
    ("proc/sys/net/core/somaxconn", "128\n"),
    ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("proc/sys/net/netfilter/nf_conntrack_count", "17\n"),
    ("proc/sys/fs/file-max", "9223372036854775807\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n"),
    (
        "proc/swaps",
        "Filename Type Size Used Priority\n/dev/zram0 partition 512 0 100\n/dev/sda2 partition 1024 0 -2\n",
    ),
    ("proc/stat", "cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n"),
    ("proc/uptime", "3600.50 7000.00\n"),
    ("proc/vmstat", "pswpin 5\npswpout 7\n"),
    (
        "proc/net/netstat",
        "TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 1 120\nIpExt: InOctets\nIpExt: 9\n",
    ),
    ("proc/net/softnet_stat", "0000ffff 00000002 0\n0000ffff 0000000a 0\n"),
    (
        "proc/net/stat/nf_conntrack",
        "entries searched drop early_drop\n00000011 0 00000003 0\n00000011 0 00000001 0\n",
    ),
    (
        "proc/self/limits",
        "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 unlimited            files\n",
    ),
    ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm \n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "133\n"),
    ("sys/block/nvme0n1/queue/scheduler", "none [mq-deadline] kyber\n"),
    ("sys/block/nvme0n1/queue/rotational", "0\n"),
    ("sys/block/loop0/queue/scheduler", "[none]\n"),
];

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn probe(root: &Path) -> HostProbe<HostRoot> {
    HostProbe::new(HostRoot::new(root), HostRole::Server).unwrap()
}

fn observed(root: &Path) -> Observation {
    observe(&mut probe(root), None, &mut |_| {}).unwrap()
}

#[test]
fn settings_and_facts_come_from_proc_and_sys() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &FILES);
    let observation = observed(directory.path());
    assert_eq!(observation.version.as_deref(), Some("6.1.0-18-amd64"));
    assert_eq!(observation.role.as_deref(), Some("server"));
    let settings = [
        ("net.core.somaxconn", Value::from(128.0)),
        ("net.ipv4.ip_local_port_range", Value::from("32768 60999")),
        ("fs.file-max", Value::from(9_223_372_036_854_775_807.0)),
        ("vm.swappiness", Value::from(60.0)),
        ("transparent_hugepage", Value::from("always")),
        ("clocksource", Value::from("hpet")),
        ("cpu.governor", Value::from("powersave")),
        ("cpu.idle_exit_latency_us", Value::from(133.0)),
        ("nofile.soft", Value::from(1_024.0)),
        ("nofile.hard", Value::from(9_223_372_036_854_775_807.0)),
    ];
    let expected = settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(observation.settings, expected);
    let facts = [
        ("memory_bytes", Value::from(2_097_152.0)),
        ("swap_bytes", Value::from(1_048_576.0)),
        ("cores", Value::from(2.0)),
        ("numa_nodes", Value::from(1.0)),
        ("local_ports", Value::from(28_232.0)),
        ("conntrack_entries", Value::from(17.0)),
        ("tsc_available", Value::from(true)),
    ];
    assert_eq!(observation.facts, facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    let disks = &observation.groups["block device"];
    assert_eq!(disks.len(), 1);
    let expected =
        [("bus", "nvme".into()), ("rotational", false.into()), ("scheduler", "mq-deadline".into())];
    assert_eq!(disks[0].settings, expected.map(|(name, value)| (name.to_owned(), value)).into());
}

#[test]
fn the_limit_of_the_control_group_is_the_memory_if_it_is_smaller() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &FILES);
    for (limit, expected) in [("1048576", 1_048_576.0), ("max", 2_097_152.0), ("9000000000", 2_097_152.0)] {
        write(directory.path(), &[("sys/fs/cgroup/memory.max", limit)]);
        assert_eq!(observed(directory.path()).facts["memory_bytes"], Value::from(expected), "{limit}");
    }
}

#[test]
fn counters_are_compared_with_an_earlier_moment_or_with_the_start() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &FILES);
    let counters = observed(directory.path()).counters;
    let since_start = |after: f64| Increase { before: 0.0, after, window_s: 3_600.5 };
    let names = ["ListenOverflows", "pswpout", "softnet_dropped", "conntrack_drop"];
    assert_eq!(names.map(|name| counters[name]), [120.0, 7.0, 12.0, 4.0].map(since_start));
    let mut load = |_| write(directory.path(), &[("proc/uptime", "3610.5 1"), ("proc/vmstat", "pswpout 9")]);
    let window = Some(Duration::from_secs(10));
    let counters = observe(&mut probe(directory.path()), window, &mut load).unwrap().counters;
    assert_eq!(counters["pswpout"], Increase { before: 7.0, after: 9.0, window_s: 10.0 });
}

#[test]
fn a_host_without_these_files_has_missing_values_or_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let product = Product::named("linux").unwrap();
    let error = HostProbe::new(HostRoot::new(directory.path()), HostRole::Server).unwrap_err();
    assert!(error.to_string().contains("only Linux"), "{error}");
    write(directory.path(), &FILES[..1]);
    let observation = observed(directory.path());
    assert!(observation.settings.is_empty() && observation.counters.is_empty(), "{observation:?}");
    assert!(observation.groups["block device"].is_empty());
    let advice = crate::advise(product, &observation);
    assert!(advice.findings.is_empty() && !advice.undecided.is_empty());
}
