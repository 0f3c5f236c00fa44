//! Processes of this machine, from `/proc`.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use super::ValueKind::{Counter, Gauge};
use super::{Readings, Source};
use crate::limits::THREADS_READ_MAX;
use crate::process::SampledProcess;
use crate::server_process::ServerProcess;

/// CPU time, memory, disk, files and context switches of one process, or of a server that is restarted meanwhile.
#[derive(Debug)]
pub struct Process {
    server: ServerProcess,
    prefix: String,
    /// The process of the previous reading.
    last: Option<SampledProcess>,
}

impl Process {
    /// A running process. `prefix` is the prefix of its names.
    pub fn new(pid: u32, prefix: &str) -> Result<Self, String> {
        let sampled = SampledProcess::new(pid).map_err(|_| {
            format!(
                "process {pid} is not on this machine, so its CPU time, memory and I/O are not in the result; \
                 run the bench beside it (tacho bench worker) or give the id of a local process"
            )
        })?;
        Ok(Self::of(ServerProcess::single(sampled), prefix))
    }

    /// The processes of one server.
    pub fn of(server: ServerProcess, prefix: &str) -> Self {
        Self { server, prefix: prefix.to_owned(), last: None }
    }
}

/// Context switches of all threads: voluntary and involuntary ones.
fn switches(pid: u32) -> Option<(f64, f64)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let (mut voluntary, mut forced) = (0.0, 0.0);
    for task in tasks.flatten().take(THREADS_READ_MAX) {
        let Ok(status) = fs::read_to_string(task.path().join("status")) else { continue };
        voluntary += field(&status, "voluntary_ctxt_switches:").unwrap_or(0.0);
        forced += field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0.0);
    }
    Some((voluntary, forced))
}

impl Source for Process {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn read(&mut self) -> Result<Readings, String> {
        let now = self.server.current();
        let gone = || format!("process {} has ended", now.map_or(0, |process| process.pid()));
        let cpu = self.server.cpu().ok_or_else(gone)?;
        let mut readings = vec![("cpu_us".to_owned(), Counter, cpu.as_secs_f64() * 1e6)];
        let Some(process) = now else { return Ok(readings) };
        let is_another = self.last.replace(process).is_some_and(|last| last != process);
        let mut add = |name: &str, kind, value: Option<f64>| {
            // Only CPU time is summed over processes. The other counters of a new process start again, without growth
            // yet.
            if let Some(value) = value.filter(|_| kind == Gauge || !is_another) {
                readings.push((name.to_owned(), kind, value));
            }
        };
        add("rss_bytes", Gauge, process.rss_bytes().map(|bytes| bytes as f64));
        add("open_files", Gauge, process.open_files().map(|count| count as f64));
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{}/{name}", process.pid())).unwrap_or_default();
        add("threads", Gauge, field(&read("status"), "Threads:"));
        let switches = switches(process.pid());
        add("voluntary_switches", Counter, switches.map(|(voluntary, _)| voluntary));
        add("forced_switches", Counter, switches.map(|(_, forced)| forced));
        // The I/O counters of another user's processes are hidden, and then absent.
        let io = read("io");
        add("disk_read_bytes", Counter, field(&io, "read_bytes:"));
        add("disk_written_bytes", Counter, field(&io, "write_bytes:"));
        Ok(readings)
    }
}

fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Whether an address belongs to this machine.
pub fn is_local(address: IpAddr) -> bool {
    // Only a local address can be bound.
    UdpSocket::bind((address, 0)).is_ok()
}

/// The process that listens on a TCP port of this machine, if it is visible.
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

/// The server's process on this machine: the listener of the port, if it has one of the names. Other listeners, such as
/// a proxy or the forwarder of a container, are not the server.
pub fn server_pid(address: SocketAddr, names: &[&str]) -> Option<u32> {
    let pid = is_local(address.ip()).then(|| listener_pid(address.port())).flatten()?;
    has_name(pid, names).then_some(pid)
}

/// Whether the name of a process contains one of these names.
pub fn has_name(pid: u32, names: &[&str]) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    names.iter().any(|known| name.contains(known))
}

/// The inodes of listening sockets (state 0A) of a port in a table of proc_net_tcp(5).
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
    fn a_server_that_was_started_again_continues_with_its_cpu_time_and_begins_its_other_counters() {
        let names = |process: &mut Process| -> Vec<String> {
            process.read().unwrap().into_iter().map(|(name, ..)| name).collect()
        };
        let own = SampledProcess::new(std::process::id()).unwrap();
        let server = ServerProcess::single(own);
        let mut process = Process::of(server.clone(), "target");
        let all = names(&mut process);
        assert!(all.contains(&"voluntary_switches".to_owned()), "{all:?}");
        server.end(own);
        assert_eq!(names(&mut process), ["cpu_us"], "nobody is there");
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        server.begin(SampledProcess::new(other.id()).unwrap());
        let first = names(&mut process);
        let second = names(&mut process);
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(first.contains(&"rss_bytes".to_owned()), "{first:?}");
        assert!(!first.contains(&"voluntary_switches".to_owned()), "its growth is not known yet: {first:?}");
        assert!(second.contains(&"voluntary_switches".to_owned()), "{second:?}");
        assert!(process.read().unwrap_err().contains(&format!("process {} has ended", other.id())));
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
