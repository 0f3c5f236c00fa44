//! How much of a limit of the memory the process uses.

use std::path::Path;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// A control group: what its processes have touched, and memory of the kernel.
    Group,
    /// `RLIMIT_DATA`: private memory that may be written, touched or not.
    Data,
    /// `RLIMIT_AS`: the address space.
    AddressSpace,
    /// The machine: memory that the process has touched and that is not a file's.
    Resident,
}

impl Counted {
    /// The name of a resource limit.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Group => "control group",
            Self::Data => "RLIMIT_DATA",
            Self::AddressSpace => "RLIMIT_AS",
            Self::Resident => "memory",
        }
    }

    /// Whether an allocation above the limit fails. The others end the process.
    pub(crate) fn is_resource_limit(self) -> bool {
        matches!(self, Self::Data | Self::AddressSpace)
    }
}

/// Bytes of a page.
fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// The bytes of this process that a limit counts, from the text of `/proc/self/statm`. A control group counts more: see
/// [`group_bytes`].
pub(crate) fn own_bytes(statm: &str, counts: Counted) -> Option<u64> {
    // size resident shared text lib data dirty
    let mut fields = statm.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
    let (size, resident, shared) = (fields.next()??, fields.next()??, fields.next()??);
    let data = fields.nth(2)??;
    let pages = match counts {
        Counted::AddressSpace => size,
        Counted::Data => data,
        Counted::Group | Counted::Resident => resident.saturating_sub(shared),
    };
    Some(pages * page_bytes())
}

/// Bytes of files in the memory of this process, most of them the program's own.
pub(crate) fn file_bytes(statm: &str) -> u64 {
    let shared = statm.split_ascii_whitespace().nth(2).and_then(|pages| pages.parse::<u64>().ok());
    shared.unwrap_or(0) * page_bytes()
}

/// The bytes of a control group that the kernel cannot reclaim at once: its usage without the pages of files, but with those that
/// must be written first. `limit` is the file of its limit, of either version.
pub(crate) fn group_bytes(limit: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let (directory, file) = limit.rsplit_once('/')?;
    let (usage, names) = match file {
        "memory.max" => ("memory.current", ["active_file", "inactive_file", "file_dirty", "file_writeback"]),
        _ => {
            let names = ["total_active_file", "total_inactive_file", "total_dirty", "total_writeback"];
            ("memory.usage_in_bytes", names)
        }
    };
    let directory = Path::new(directory);
    let usage: u64 = read(&directory.join(usage))?.trim().parse().ok()?;
    let stat = read(&directory.join("memory.stat"))?;
    let value = |name: &str| {
        let mut values = stat.lines().filter_map(|line| line.split_once(' '));
        values.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<u64>().ok()).unwrap_or(0)
    };
    let [active, inactive, dirty, writeback] = names.map(value);
    let clean = (active + inactive).saturating_sub(dirty + writeback);
    Some(usage.saturating_sub(clean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_counts_its_part_of_the_process() {
        let statm = "1000 300 100 50 0 700 0\n";
        let of = |counts| own_bytes(statm, counts).map(|bytes| bytes / page_bytes());
        assert_eq!(of(Counted::AddressSpace), Some(1_000));
        assert_eq!(of(Counted::Data), Some(700));
        assert_eq!(of(Counted::Resident), Some(200));
        assert_eq!((file_bytes(statm), file_bytes("")), (100 * page_bytes(), 0));
        assert_eq!(own_bytes("1000 300", Counted::Data), None);
        assert_eq!(own_bytes("a b c d e f g", Counted::Data), None);
        let own = std::fs::read_to_string("/proc/self/statm").unwrap();
        assert!(own_bytes(&own, Counted::Resident) > Some(0));
    }

    #[test]
    fn pages_of_files_count_for_a_group_until_they_are_written() {
        let stat = "anon 500\nactive_file 200\ninactive_file 100\nfile_dirty 30\nfile_writeback 20\n";
        let read = |path: &Path| match path.to_str()? {
            "/g/a/memory.current" => Some("1000\n".to_owned()),
            "/g/a/memory.stat" => Some(stat.to_owned()),
            _ => None,
        };
        assert_eq!(group_bytes("/g/a/memory.max", read), Some(750));
        assert_eq!(group_bytes("/g/b/memory.max", read), None);
        let stat = "cache 300\ntotal_active_file 250\ntotal_inactive_file 50\ntotal_dirty 10\n";
        let read = |path: &Path| match path.to_str()? {
            "/g/memory.usage_in_bytes" => Some("1000".to_owned()),
            "/g/memory.stat" => Some(stat.to_owned()),
            _ => None,
        };
        assert_eq!(group_bytes("/g/memory.limit_in_bytes", read), Some(710));
    }
}
