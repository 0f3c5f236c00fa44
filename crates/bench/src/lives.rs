//! A server that a run kills and starts again is one target: what its processes spent is added up, and which of them is
//! there now can be asked at any time, from any thread.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::process::Sampled;

/// The processes of one server, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lives(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: Option<Sampled>,
    /// CPU time of those that have ended.
    spent: Duration,
}

impl Lives {
    /// A server that stays one process.
    pub(crate) fn one(process: Sampled) -> Self {
        let lives = Self::default();
        lives.begin(process);
        lives
    }

    /// From now on this process is the server.
    pub(crate) fn begin(&self, process: Sampled) {
        self.0.lock().now = Some(process);
    }

    /// This process is about to be ended, if it is the server: what it spent until now is kept. Of one that is gone already
    /// nothing can be read any more.
    pub(crate) fn end(&self, process: Sampled) {
        let mut state = self.0.lock();
        if state.now == Some(process) {
            state.now = None;
            state.spent += process.cpu().unwrap_or_default();
        }
    }

    /// The process that is the server now; `None` between two of them.
    pub(crate) fn now(&self) -> Option<Sampled> {
        self.0.lock().now
    }

    /// CPU time of all of them so far. `None` when the one that should be there cannot be read.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let state = self.0.lock();
        let now = state.now.map_or(Some(Duration::ZERO), |process| process.cpu());
        Some(state.spent + now?)
    }

    /// Resident memory of the one that is there, bytes.
    pub(crate) fn rss_bytes(&self) -> Option<u64> {
        self.now()?.rss_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that works, says so, and waits.
    fn working() -> (Child, Sampled) {
        let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; read line";
        let mut command = Command::new("sh");
        let mut child =
            command.args(["-c", work]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let sampled = Sampled::new(child.id()).unwrap();
        (child, sampled)
    }

    fn ended(mut child: Child) {
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_was_spent_stays_when_a_process_is_killed_and_another_begins() {
        let lives = Lives::default();
        assert_eq!((lives.cpu(), lives.now()), (Some(Duration::ZERO), None));
        let (first, sampled) = working();
        lives.begin(sampled);
        let alive = lives.cpu().unwrap();
        assert!(alive > Duration::ZERO && lives.rss_bytes().unwrap() > 0);
        lives.end(sampled);
        ended(first);
        let dead = lives.cpu().unwrap();
        assert!(dead >= alive, "{dead:?} of the dead, {alive:?} before");
        assert_eq!((lives.now(), lives.rss_bytes()), (None, None));
        lives.end(sampled);
        assert_eq!(lives.cpu(), Some(dead), "it ended once");
        let (second, next) = working();
        lives.begin(next);
        lives.end(sampled);
        assert_eq!(lives.now(), Some(next), "another one's end is not its own");
        assert!(lives.cpu().unwrap() > dead);
        ended(second);
        assert_eq!(lives.cpu(), None, "it should be there and is not");
    }
}
