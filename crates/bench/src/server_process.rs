//! A server that a run kills and starts again is one target: what its processes spent is added up, and which of them is
//! there now can be asked at any time, from any thread.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::process::SampledProcess;

/// The processes of one server, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerProcess(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    current: Option<SampledProcess>,
    /// CPU time of those that have ended.
    spent: Duration,
}

impl ServerProcess {
    /// A server that stays one process.
    pub(crate) fn single(process: SampledProcess) -> Self {
        let server = Self::default();
        server.begin(process);
        server
    }

    /// From now on this process is the server.
    pub(crate) fn begin(&self, process: SampledProcess) {
        self.0.lock().current = Some(process);
    }

    /// This process is about to be ended, if it is the server: what it spent until now is kept. Of one that is gone already
    /// nothing can be read any more.
    pub(crate) fn end(&self, process: SampledProcess) {
        let mut state = self.0.lock();
        if state.current == Some(process) {
            state.current = None;
            state.spent += process.cpu().unwrap_or_default();
        }
    }

    /// The process that is the server now; `None` between two of them.
    pub(crate) fn current(&self) -> Option<SampledProcess> {
        self.0.lock().current
    }

    /// CPU time of all of them so far. `None` when the one that should be there cannot be read.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let state = self.0.lock();
        let current = state.current.map_or(Some(Duration::ZERO), |process| process.cpu());
        Some(state.spent + current?)
    }

    /// Resident memory of the one that is there, bytes.
    pub(crate) fn rss_bytes(&self) -> Option<u64> {
        self.current()?.rss_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that works, says so, and waits.
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
