//! Processes of this machine, from `/proc`.

use std::fs;
use std::net::{IpAddr, UdpSocket};

use super::Meaning::{Counter, Gauge};
use super::{Readings, Source};
use crate::limits::THREADS_READ_MAX;
use crate::process::Sampled;

/// CPU time, memory, disk, files and context switches of one process.
#[derive(Debug)]
pub struct Process {
    sampled: Sampled,
    prefix: String,
}

impl Process {
    /// A process that runs now. `prefix` stands before its names.
    pub fn new(pid: u32, prefix: &str) -> Result<Self, String> {
        let sampled = Sampled::new(pid).map_err(|_| {
            format!(
                "process {pid} is not on this machine, so its CPU time, memory and I/O are not in the result; \
                 run the bench beside it (tacho bench worker) or give the id of a local process"
            )
        })?;
        Ok(Self { sampled, prefix: prefix.to_owned() })
    }

    fn read_file(&self, name: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/{name}", self.sampled.pid())).ok()
    }

    /// Context switches of all threads: those it asked for by waiting, and those it did not.
    fn switches(&self) -> Option<(f64, f64)> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.sampled.pid())).ok()?;
        let (mut voluntary, mut forced) = (0.0, 0.0);
        for task in tasks.flatten().take(THREADS_READ_MAX) {
            let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
            voluntary += field(&status, "voluntary_ctxt_switches:").unwrap_or(0.0);
            forced += field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0.0);
        }
        Some((voluntary, forced))
    }
}

impl Source for Process {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn read(&mut self) -> Result<Readings, String> {
        let gone = || format!("process {} has ended", self.sampled.pid());
        let cpu = self.sampled.cpu().ok_or_else(gone)?;
        let mut readings = vec![("cpu_us".to_owned(), Counter, cpu.as_secs_f64() * 1e6)];
        let mut add = |name: &str, meaning, value: Option<f64>| {
            if let Some(value) = value {
                readings.push((name.to_owned(), meaning, value));
            }
        };
        add("rss_bytes", Gauge, self.sampled.rss_bytes().map(|bytes| bytes as f64));
        add("open_files", Gauge, self.sampled.open_files().map(|count| count as f64));
        let status = self.read_file("status").unwrap_or_default();
        add("threads", Gauge, field(&status, "Threads:"));
        let switches = self.switches();
        add("voluntary_switches", Counter, switches.map(|(voluntary, _)| voluntary));
        add("forced_switches", Counter, switches.map(|(_, forced)| forced));
        // Another user's processes hide their I/O; then it is absent.
        let io = self.read_file("io").unwrap_or_default();
        add("disk_read_bytes", Counter, field(&io, "read_bytes:"));
        add("disk_written_bytes", Counter, field(&io, "write_bytes:"));
        Ok(readings)
    }
}

fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Whether an address is one of this machine.
pub fn is_local(address: IpAddr) -> bool {
    // Only a local address can be bound.
    UdpSocket::bind((address, 0)).is_ok()
}

/// The process that listens on a TCP port of this machine, if we may see it.
pub fn listener_pid(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inodes: Vec<String> = tables
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listeners(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|pid: &u32| {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        files.flatten().any(|file| {
            let link = fs::read_link(file.path()).ok();
            link.and_then(|link| link.to_str().map(|name| inodes.iter().any(|i| i == name))).unwrap_or(false)
        })
    })
}

/// Inodes of listening sockets (state 0A) of a port in a table of proc_net_tcp(5).
fn listeners(table: &str, port: u16) -> Vec<u64> {
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let listens = columns.get(1)?.ends_with(&suffix) && *columns.get(3)? == "0A";
            listens.then(|| columns.get(9)?.parse().ok()).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_process_elsewhere_is_named_with_what_to_do() {
        let error = Process::new(4_000_000, "target").unwrap_err();
        assert!(error.contains("4000000") && error.contains("not on this machine"), "{error}");
    }

    #[test]
    fn own_figures_are_all_there() {
        let mut own = Process::new(std::process::id(), "own").unwrap();
        let readings = own.read().unwrap();
        let value = |name: &str| readings.iter().find(|(n, _, _)| n == name).map(|(_, _, v)| *v);
        assert!(value("threads").unwrap() >= 1.0 && value("rss_bytes").unwrap() > 100_000.0, "{readings:?}");
        assert!(value("voluntary_switches").unwrap() + value("forced_switches").unwrap() >= 0.0);
    }

    #[test]
    fn the_listener_of_a_port_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(listener_pid(listener.local_addr().unwrap().port()), Some(std::process::id()));
        let table = "  sl  local rem st\n 0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 4242 1";
        assert_eq!(listeners(table, 8080), [4242]);
        assert!(listeners(table, 8081).is_empty());
    }

    #[test]
    fn local_addresses_are_told_from_others() {
        assert!(is_local("127.0.0.1".parse().unwrap()));
        assert!(!is_local("192.0.2.1".parse().unwrap()));
    }
}
