//! Finds the available memory: the smallest of the limits of control groups, the resource limits and the machine's memory.

use std::fmt;

use model::limits::QUERY_STACK_BYTES;
use rustix::process::{Resource, getrlimit};

use super::raw::RawQuery;
use super::usage::{Counted, own_bytes};
use crate::limits::{MEMORY_BYTES_MIN, OTHER_STACK_BYTES};

/// The mount point of control groups.
const CGROUPS: &str = "/sys/fs/cgroup";

/// An amount of memory and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    /// What the limit leaves for data.
    pub bytes: u64,
    /// The source: a file, or the name of a resource limit.
    pub from: String,
    /// What the limit counts.
    pub counts: Counted,
    /// Bytes that the limit counts besides data: the program's file and the stacks of threads.
    pub fixed: u64,
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, from {}", self.bytes, self.from)
    }
}

impl Memory {
    /// All limits of the memory of this process, the smallest first.
    pub(crate) fn all(query: &RawQuery) -> Vec<Self> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        sorted(read, &resource_limits(), stack_bytes(threads(query)))
    }

    /// Checks that a resource limit leaves enough for data. What exceeds such a limit ends the process.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.counts.is_resource_limit() || self.bytes >= MEMORY_BYTES_MIN {
            return Ok(());
        }
        let Self { from, fixed, bytes, .. } = self;
        let needed = fixed + MEMORY_BYTES_MIN;
        Err(format!(
            "{from} allows {} bytes and the server needs {needed}: {fixed} for the program's file and the stacks of threads, and \
             {MEMORY_BYTES_MIN} for data; raise the limit (ulimit, LimitDATA=, LimitAS=), remove it, or lower query.threads",
            fixed + bytes
        ))
    }
}

/// The resource limits of this process that have a value.
fn resource_limits() -> Vec<(Counted, u64)> {
    let limit = |counts, resource| getrlimit(resource).current.map(|bytes| (counts, bytes));
    let limits = [limit(Counted::Data, Resource::Data), limit(Counted::AddressSpace, Resource::As)];
    limits.into_iter().flatten().collect()
}

/// The number of threads of queries that the resource limits have room for; `None` if that is one for each core.
pub(super) fn fitting_threads() -> Option<usize> {
    let least = resource_limits().into_iter().map(|(_, bytes)| bytes).min()?;
    Some(fitting(least)).filter(|fitting| *fitting < cores())
}

/// The number of threads whose stacks take a quarter of a limit, at least one.
fn fitting(limit: u64) -> usize {
    let each = 2 * QUERY_STACK_BYTES as u64;
    usize::try_from(limit / 4 / each).unwrap_or(usize::MAX).max(1)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn threads(query: &RawQuery) -> usize {
    if query.threads == 0 { cores() } else { query.threads }
}

/// The bytes that the stacks of threads count for resource limits, used or not. As many threads of queries read as compute.
fn stack_bytes(threads: usize) -> u64 {
    2 * threads as u64 * QUERY_STACK_BYTES as u64 + OTHER_STACK_BYTES
}

/// The values that `read` finds in files, and the resource limits minus `stacks` and what the process has already.
fn sorted(read: impl Fn(&str) -> Option<String>, limits: &[(Counted, u64)], stacks: u64) -> Vec<Memory> {
    let statm = read("/proc/self/statm").unwrap_or_default();
    let of_limit = |&(counts, bytes): &(Counted, u64)| {
        let fixed = stacks + own_bytes(&statm, counts).unwrap_or(0);
        Memory { bytes: bytes.saturating_sub(fixed), from: counts.name().to_owned(), counts, fixed }
    };
    let mut found = of_cgroups(&read);
    found.extend(limits.iter().map(of_limit));
    found.extend(of_machine(&read));
    found.sort_by_key(|memory| memory.bytes);
    found
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
                    found.push(Memory { bytes, from, counts: Counted::Group, fixed: 0 });
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
    Some(Memory { bytes: kib * 1024, from: FILE.to_owned(), counts: Counted::Resident, fixed: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: (&str, &str) = ("/proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\n");

    fn all(files: &[(&str, &str)], limits: &[(Counted, u64)], stacks: u64) -> Vec<Memory> {
        let read =
            |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        sorted(read, limits, stacks)
    }

    fn found(files: &[(&str, &str)], limits: &[(Counted, u64)], stacks: u64) -> Option<(u64, String)> {
        all(files, limits, stacks).first().map(|memory| (memory.bytes, memory.from.clone()))
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
        let limits = [(Counted::Data, 1_000), (Counted::AddressSpace, 900)];
        assert_eq!(found(&[MACHINE], &limits, 300), memory(600, "RLIMIT_AS"));
        assert_eq!(found(&[MACHINE], &limits[..1], 300), memory(700, "RLIMIT_DATA"));
        let first = all(&[MACHINE], &limits, 300).swap_remove(0);
        assert_eq!((first.to_string().as_str(), first.fixed), ("600 bytes, from RLIMIT_AS", 300));
    }

    #[test]
    fn a_resource_limit_without_room_for_data_is_refused_with_what_it_needs() {
        const MIB: u64 = 1024 * 1024;
        let limit = |bytes| all(&[MACHINE], &[(Counted::Data, bytes)], 300 * MIB).swap_remove(0).check();
        assert_eq!(limit(300 * MIB + MEMORY_BYTES_MIN), Ok(()));
        let refused = limit(100 * MIB).unwrap_err();
        let needed = (300 * MIB + MEMORY_BYTES_MIN).to_string();
        assert!(refused.starts_with("RLIMIT_DATA allows ") && refused.contains(&needed), "{refused}");
        let group = Memory { bytes: 1, from: "a file".into(), counts: Counted::Group, fixed: 0 };
        assert_eq!(group.check(), Ok(()), "a control group counts what is touched");
    }

    #[test]
    fn stacks_take_a_quarter_of_a_resource_limit() {
        const MIB: u64 = 1024 * 1024;
        let threads = [0, 512 * MIB, 1023 * MIB, 1024 * MIB, 2048 * MIB, u64::MAX].map(fitting);
        assert_eq!(threads[..5], [1, 1, 1, 2, 4]);
        assert!(threads[5] > 1_000);
        assert_eq!(stack_bytes(2), 256 * MIB + OTHER_STACK_BYTES);
    }

    #[test]
    fn malformed_files_give_no_limit() {
        let broken = [("/proc/self/cgroup", "nonsense\n0\n"), ("/proc/meminfo", "MemTotal: many\n")];
        assert_eq!(found(&broken, &[], 0), None);
    }
}
