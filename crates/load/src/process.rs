//! The cost of a process: CPU time and memory of another process from `/proc`, and of this one from its CPU clock.

use std::fs;
use std::time::Duration;

use nix::time::clock_getcpuclockid;
use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};

/// A process to sample, by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledProcess {
    pid: Pid,
}

impl SampledProcess {
    /// A process that exists now.
    pub fn new(pid: u32) -> Result<Self> {
        let bad = || Error::Options(format!("there is no process {pid} to sample"));
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(bad)?;
        let sampled = Self { pid };
        sampled.cpu().map(|_| sampled).ok_or_else(bad)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The CPU time of all threads, user and system, including ended threads. It includes child processes, also ended
    /// ones: PostgreSQL has one for each connection, Redis one for a snapshot. The time of ended children has the
    /// resolution of the kernel's tick (10 ms).
    pub fn cpu(&self) -> Option<Duration> {
        let of_children = self.children().into_iter().filter_map(|pid| cpu_of(pid.try_into().ok()?));
        Some(cpu_of(self.pid.as_raw_nonzero().get())? + of_children.sum::<Duration>())
    }

    /// The resident memory in bytes, including the private memory of child processes.
    pub fn rss_bytes(&self) -> Option<u64> {
        let own = parse_status_kib(&self.read("status")?, "VmRSS:")?;
        let of_child = |pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            parse_status_kib(&status, "RssAnon:")
        };
        Some((own + self.children().into_iter().filter_map(of_child).sum::<u64>()) * 1024)
    }

    /// The child processes; none if the kernel does not list them.
    fn children(&self) -> Vec<u32> {
        let pid = self.pid();
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
    }

    /// The soft limit of open files and their current number, of the process or, if child processes do its work, of all
    /// of them.
    pub fn open_files_of_all(&self) -> Option<(u64, u64)> {
        let children = self.children();
        let workers = children.iter().filter_map(|pid| Self::new(*pid).ok());
        let of = |process: &Self| Some((process.open_files_cap()?, process.open_files().unwrap_or(0)));
        let all: Vec<(u64, u64)> = workers.filter_map(|worker| of(&worker)).collect();
        match all.is_empty() {
            true => of(self),
            false => Some(all.iter().fold((0, 0), |sum, (cap, open)| (sum.0 + cap, sum.1 + open))),
        }
    }

    /// The soft limit of open files.
    pub fn open_files_cap(&self) -> Option<u64> {
        parse_open_files(&self.read("limits")?)
    }

    /// The number of open files; `None` if the process is gone or hidden.
    pub fn open_files(&self) -> Option<u64> {
        let directory = format!("/proc/{}/fd", self.pid());
        match fs::metadata(&directory).ok()?.len() {
            // Before Linux 6.2 the size of the directory is 0. Then the files must be listed, which takes milliseconds
            // for ten thousand.
            0 => Some(fs::read_dir(&directory).ok()?.count() as u64),
            files => Some(files),
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid, signal)
            .map_err(|errno| Error::io(format!("signal to process {}", self.pid()))(errno.into()))
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/{file}", self.pid())).ok()
    }
}

/// The CPU time of one process and of its ended children.
fn cpu_of(pid: i32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (own, of_ended) = parse_stat_cpu(&stat, rustix::param::clock_ticks_per_second())?;
    // Without a readable CPU clock, the ticks of user and system time are each rounded down.
    let clock = clock_getcpuclockid(nix::unistd::Pid::from_raw(pid)).and_then(|clock| clock.now());
    Some(clock.map_or(own, Duration::from) + of_ended)
}

/// The CPU time of this process so far, all threads, user and system.
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Fields 14 to 17 of proc_pid_stat(5), counted after the command name, which may contain blanks and brackets: utime
/// and stime of the process and of its ended children.
fn parse_stat_cpu(stat: &str, ticks_per_second: u64) -> Option<(Duration, Duration)> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<u64> =
        after_name.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    let time = |ticks: u64| Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64);
    let [user, system, user_of_ended, system_of_ended] = fields[..] else { return None };
    Some((time(user + system), time(user_of_ended + system_of_ended)))
}

fn parse_status_kib(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn parse_open_files(limits: &str) -> Option<u64> {
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_ended_children_is_found_behind_a_name_with_brackets() {
        let stat = "42 (a) b (c)) S 1 42 42 0 -1 4194560 100 0 0 0 100 50 30 20 20 0 4 0 1000 1 2 3";
        let expected = (Duration::from_millis(1_500), Duration::from_millis(500));
        assert_eq!(parse_stat_cpu(stat, 100), Some(expected));
        assert_eq!(parse_stat_cpu("no bracket", 100), None);
    }

    #[test]
    fn memory_and_limits_are_read() {
        assert_eq!(parse_status_kib("VmPeak:\t9 kB\nVmRSS:\t  1234 kB\n", "VmRSS:"), Some(1_234));
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 20000                files\n";
        assert_eq!(parse_open_files(limits), Some(1_024));
    }

    #[test]
    fn processes_it_has_started_count() {
        let mut parent = std::process::Command::new("sh")
            .args([
                "-c",
                "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; sleep 60' & wait",
            ])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let sampled = SampledProcess::new(parent.id()).unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(parent.stdout.take().unwrap()), &mut line)
            .unwrap();
        let (cpu, children) = (sampled.cpu().unwrap(), sampled.children());
        for child in &children {
            SampledProcess::new(*child).unwrap().signal(Signal::KILL).unwrap();
        }
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert_eq!((line.trim(), children.len()), ("done", 1));
        assert!(cpu >= Duration::from_millis(20), "{cpu:?}");
    }

    #[test]
    fn this_process_can_be_sampled() {
        let own = SampledProcess::new(std::process::id()).unwrap();
        let before = own_cpu();
        let sum = (0..5_000_000_u64).fold(0_u64, |a, b| std::hint::black_box(a ^ b));
        std::hint::black_box(sum);
        assert!(own_cpu() > before);
        let (at_least, sampled) = (own_cpu(), own.cpu().unwrap());
        assert!(sampled >= at_least, "the same clock: {sampled:?} after {at_least:?}");
        assert!(own.rss_bytes().unwrap() > 100_000);
        assert!(own.open_files().unwrap() >= 3);
        assert!(own.open_files_cap().unwrap() > 0);
    }

    #[test]
    fn a_missing_process_is_refused_by_its_number() {
        let error = SampledProcess::new(4_000_000).unwrap_err().to_string();
        assert!(error.contains("4000000"), "{error}");
    }
}
