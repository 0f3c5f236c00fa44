//! The process of a server under test. A server that a run kills and restarts is one target: the CPU time of all its
//! processes adds up, and any thread can ask for the current one.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::process::SampledProcess;

/// The processes of one server, one after the other.
#[derive(Debug, Clone, Default)]
pub struct ServerProcess(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    current: Option<SampledProcess>,
    /// The CPU time of ended processes.
    spent: Duration,
}

impl ServerProcess {
    /// A server with a single process.
    pub fn single(process: SampledProcess) -> Self {
        let server = Self::default();
        server.begin(process);
        server
    }

    /// Makes this process the current one.
    pub fn begin(&self, process: SampledProcess) {
        self.0.lock().current = Some(process);
    }

    /// Keeps the CPU time of the current process, which is about to end. A process that is gone cannot be read any
    /// more.
    pub fn end(&self, process: SampledProcess) {
        let mut state = self.0.lock();
        if state.current == Some(process) {
            state.current = None;
            state.spent += process.cpu().unwrap_or_default();
        }
    }

    /// The current process; `None` between two of them.
    pub fn current(&self) -> Option<SampledProcess> {
        self.0.lock().current
    }

    /// The CPU time of all processes so far. `None` if the current one cannot be read.
    pub fn cpu(&self) -> Option<Duration> {
        let state = self.0.lock();
        let current = state.current.map_or(Some(Duration::ZERO), |process| process.cpu());
        Some(state.spent + current?)
    }

    /// The resident memory of the current process, bytes.
    pub fn rss_bytes(&self) -> Option<u64> {
        self.current()?.rss_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that uses CPU time, prints a line, and waits.
    fn working() -> (Child, SampledProcess) {
        let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; read line";
        let mut command = Command::new("sh");
        let mut child =
            command.args(["-c", work]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let sampled = SampledProcess::new(child.id()).unwrap();
        (child, sampled)
    }

    fn ended(mut child: Child) {
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_was_spent_stays_when_a_process_is_killed_and_another_begins() {
        let server = ServerProcess::default();
        assert_eq!((server.cpu(), server.current()), (Some(Duration::ZERO), None));
        let (first, sampled) = working();
        server.begin(sampled);
        let alive = server.cpu().unwrap();
        assert!(alive > Duration::ZERO && server.rss_bytes().unwrap() > 0);
        server.end(sampled);
        ended(first);
        let dead = server.cpu().unwrap();
        assert!(dead >= alive, "{dead:?} of the dead, {alive:?} before");
        assert_eq!((server.current(), server.rss_bytes()), (None, None));
        server.end(sampled);
        assert_eq!(server.cpu(), Some(dead), "it ended once");
        let (second, next) = working();
        server.begin(next);
        server.end(sampled);
        assert_eq!(server.current(), Some(next), "another one's end is not its own");
        assert!(server.cpu().unwrap() > dead);
        ended(second);
        assert_eq!(server.cpu(), None, "it should be there and is not");
    }
}
