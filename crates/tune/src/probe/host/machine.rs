//! What the rules of servers read about their machine.

use std::collections::BTreeMap;

use super::files::HostFiles;
use super::{facts, settings};
use crate::value::Value;

/// Memory, processors, swap, the limit of mappings, and what all disks have in common.
pub(in crate::probe) fn machine(files: &dyn HostFiles) -> BTreeMap<String, Value> {
    let mut values = facts::read(files);
    values.retain(|name, _| ["memory_bytes", "cores", "swap_bytes"].contains(&name.as_str()));
    let number = |path: &str| files.read(path).ok()?.trim().parse().ok().map(Value::Number);
    let maps = number("/proc/sys/vm/max_map_count");
    values.extend(maps.map(|maps| ("vm.max_map_count".to_owned(), maps)));
    let disks = settings::block_devices(files);
    let rotational: Vec<&Value> = disks.iter().filter_map(|disk| disk.settings.get("rotational")).collect();
    values.extend(common(&rotational).map(|value| ("rotational".to_owned(), value)));
    let ahead = |name: &String| number(&format!("/sys/block/{name}/queue/read_ahead_kb"));
    let ahead: Vec<Value> = disks.iter().filter_map(|disk| ahead(&disk.name)).collect();
    let ahead = common(&ahead.iter().collect::<Vec<_>>());
    values.extend(ahead.map(|value| ("read_ahead_kb".to_owned(), value)));
    values
}

/// The value that all have. Which disk holds the data of a server is not known here.
fn common(values: &[&Value]) -> Option<Value> {
    let first = values.first()?;
    values.iter().all(|value| value == first).then(|| (*first).clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::host::HostRoot;

    #[test]
    fn what_all_disks_have_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/sys/vm/max_map_count", "65530\n");
        for (disk, ahead) in [("sda", "128"), ("nvme0n1", "16")] {
            write(&format!("sys/block/{disk}/queue/rotational"), "0\n");
            write(&format!("sys/block/{disk}/queue/read_ahead_kb"), ahead);
        }
        let values = machine(&HostRoot::new(directory.path()));
        assert_eq!(values["vm.max_map_count"], Value::from(65_530.0));
        assert_eq!(values["rotational"], Value::from(false));
        assert!(!values.contains_key("read_ahead_kb"), "the disks differ");
        assert!(!values.contains_key("memory_bytes"));
    }
}
