//! The series about the process, with the names that all exporters of Prometheus have
//! (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>), and the version.

use std::fmt::Write as _;
use std::fs;
use std::time::SystemTime;

use crate::http::tools::state::HttpState;

/// Ticks of a second in `/proc`, which the kernel fixes for programs (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

/// Appends the series in the format of OpenMetrics. Values that the system does not give are left out.
pub(super) fn append(state: &HttpState, text: &mut String) {
    let version = state.options.version;
    let _ = write!(
        text,
        "# HELP tacho_build The version of the program.\n# TYPE tacho_build info\ntacho_build_info{{version=\"{version}\"}} 1\n"
    );
    let started = SystemTime::now().checked_sub(state.started.elapsed());
    let start_s =
        started.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok()).map(|at| at.as_secs_f64());
    let (status, stat) = (read("status"), read("stat"));
    let kib = |name: &str| status_number(&status, name).map(|kib| kib * 1024.0);
    let files = fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64);
    let files_max = Some(state.options.open_files_max as f64).filter(|max| *max > 0.0);
    for (name, kind, help, value) in [
        ("process_cpu_seconds", "counter", "Time of processors that the process has used.", cpu_s(&stat)),
        ("process_resident_memory_bytes", "gauge", "Resident memory of the process.", kib("VmRSS")),
        ("process_virtual_memory_bytes", "gauge", "Address space of the process.", kib("VmSize")),
        ("process_threads", "gauge", "Threads of the process.", status_number(&status, "Threads")),
        ("process_open_fds", "gauge", "Open files of the process.", files),
        ("process_max_fds", "gauge", "Files that the process may open.", files_max),
        ("process_start_time_seconds", "gauge", "Start of the process, in seconds since 1970.", start_s),
    ] {
        let Some(value) = value else { continue };
        let suffix = if kind == "counter" { "_total" } else { "" };
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{suffix} {value}\n");
    }
}

fn read(file: &str) -> String {
    fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default()
}

/// A number of `/proc/self/status`.
fn status_number(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The times in user and kernel mode of `/proc/self/stat`: the 14th and 15th value. The second is a name that may have blanks.
fn cpu_s(stat: &str) -> Option<f64> {
    let mut values = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || values.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_kernel_are_read() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 100 1 1";
        assert_eq!(cpu_s(stat), Some(3.0));
        assert_eq!(cpu_s(""), None);
        let status = "Name:\ttacho\nVmRSS:\t    2048 kB\nThreads:\t9\n";
        assert_eq!(status_number(status, "VmRSS"), Some(2048.0));
        assert_eq!(status_number(status, "Threads"), Some(9.0));
        assert_eq!(status_number(status, "VmSize"), None);
    }
}
