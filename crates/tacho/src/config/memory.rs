//! Finds the available memory: the smallest of the limits of control groups, the resource limits and the machine's memory.

use std::fmt;

use model::limits::QUERY_STACK_BYTES;
use rustix::process::{Resource, getrlimit};

use super::raw::RawQuery;

/// The mount point of control groups.
const CGROUPS: &str = "/sys/fs/cgroup";

/// An amount of memory and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    pub bytes: u64,
    /// The source: a file, or the name of a resource limit.
    pub from: String,
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, from {}", self.bytes, self.from)
    }
}

impl Memory {
    /// Finds the available memory; `None` if no source is known.
    pub(crate) fn find(query: &RawQuery) -> Option<Self> {
        let limit = |name, resource| getrlimit(resource).current.map(|bytes| (name, bytes));
        let limits = [limit("RLIMIT_DATA", Resource::Data), limit("RLIMIT_AS", Resource::As)];
        let read = |path: &str| std::fs::read_to_string(path).ok();
        smallest(read, limits.into_iter().flatten(), stack_bytes(query))
    }
}

/// The bytes that the stacks of query threads count for resource limits, used or not. As many threads read as compute, and two
/// watch the clock.
fn stack_bytes(query: &RawQuery) -> u64 {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if query.threads == 0 { cores() } else { query.threads };
    (2 * threads as u64 + 2) * QUERY_STACK_BYTES as u64
}

/// The smallest of the values that `read` finds in files and of the resource limits minus `stacks`.
fn smallest(
    read: impl Fn(&str) -> Option<String>,
    limits: impl Iterator<Item = (&'static str, u64)>,
    stacks: u64,
) -> Option<Memory> {
    let limits = limits
        .map(|(name, bytes)| Memory { bytes: bytes.saturating_sub(stacks), from: name.to_owned() })
        .filter(|memory| memory.bytes > 0);
    of_cgroups(&read).into_iter().chain(limits).chain(of_machine(&read)).min_by_key(|memory| memory.bytes)
}

/// The limits of the control groups of this process and of their parents.
fn of_cgroups(read: &impl Fn(&str) -> Option<String>) -> Vec<Memory> {
    let mut found = Vec::new();
    for line in read("/proc/self/cgroup").unwrap_or_default().lines() {
        // hierarchy:controllers:path; version 2 names no controllers.
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (roots, file): (&[&str], _) = if controllers.is_empty() {
            (&["", "/unified"], "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            (&["/memory"], "memory.limit_in_bytes")
        } else {
            continue;
        };
        for root in roots {
            for group in with_parents(path) {
                let from = format!("{CGROUPS}{root}{group}/{file}");
                // "max" means no limit.
                if let Some(bytes) = read(&from).and_then(|text| text.trim().parse().ok()) {
                    found.push(Memory { bytes, from });
                }
            }
        }
    }
    found
}

/// A path and all its parents; the root is the empty path.
fn with_parents(path: &str) -> impl Iterator<Item = &str> {
    let path = path.trim_end_matches('/');
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent))
}

fn of_machine(read: &impl Fn(&str) -> Option<String>) -> Option<Memory> {
    const FILE: &str = "/proc/meminfo";
    let text = read(FILE)?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Memory { bytes: kib * 1024, from: FILE.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: (&str, &str) = ("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\n");

    fn found(files: &[(&str, &str)], limits: &[(&'static str, u64)], stacks: u64) -> Option<(u64, String)> {
        let read =
            |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        smallest(read, limits.iter().copied(), stacks).map(|memory| (memory.bytes, memory.from))
    }

    fn memory(bytes: u64, from: &str) -> Option<(u64, String)> {
        Some((bytes, from.to_owned()))
    }

    #[test]
    fn the_machine_counts_where_nothing_is_limited() {
        assert_eq!(found(&[], &[], 0), None);
        assert_eq!(found(&[MACHINE], &[], 0), memory(8_192_000_000, "/proc/meminfo"));
        let unlimited = [MACHINE, ("/proc/self/cgroup", "0::/a\n"), ("/sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(found(&unlimited, &[], 0), memory(8_192_000_000, "/proc/meminfo"));
    }

    #[test]
    fn a_control_group_or_one_above_it_counts() {
        let group = ("/proc/self/cgroup", "0::/system.slice/tacho.service\n");
        let own = "/sys/fs/cgroup/system.slice/tacho.service/memory.max";
        let parent = "/sys/fs/cgroup/system.slice/memory.max";
        let limited = |own_max, parent_max| [MACHINE, group, (own, own_max), (parent, parent_max)];
        assert_eq!(found(&limited("268435456\n", "max\n"), &[], 0), memory(268_435_456, own));
        assert_eq!(found(&limited("max\n", "1000\n"), &[], 0), memory(1_000, parent));
        // A container sees its own group as the root.
        let root = "/sys/fs/cgroup/memory.max";
        assert_eq!(
            found(&[MACHINE, ("/proc/self/cgroup", "0::/\n"), (root, "5\n")], &[], 0),
            memory(5, root)
        );
    }

    #[test]
    fn the_first_version_of_control_groups_counts_too() {
        let groups = ("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/a/b\n1:name=systemd:/\n0::/\n");
        let file = "/sys/fs/cgroup/memory/a/memory.limit_in_bytes";
        let unlimited = ("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(found(&[MACHINE, groups, unlimited, (file, "77\n")], &[], 0), memory(77, file));
        assert_eq!(found(&[MACHINE, groups, unlimited], &[], 0), memory(8_192_000_000, "/proc/meminfo"));
    }

    #[test]
    fn resource_limits_count_less_the_stacks() {
        let limits = [("RLIMIT_DATA", 1_000), ("RLIMIT_AS", 900)];
        assert_eq!(found(&[MACHINE], &limits, 300), memory(600, "RLIMIT_AS"));
        assert_eq!(found(&[MACHINE], &limits[..1], 300), memory(700, "RLIMIT_DATA"));
        let text = Memory { bytes: 5, from: "RLIMIT_AS".into() }.to_string();
        assert_eq!(text, "5 bytes, from RLIMIT_AS");
    }

    #[test]
    fn malformed_files_give_no_limit() {
        let broken = [("/proc/self/cgroup", "nonsense\n0\n"), ("/proc/meminfo", "MemTotal: many\n")];
        assert_eq!(found(&broken, &[], 0), None);
    }
}
