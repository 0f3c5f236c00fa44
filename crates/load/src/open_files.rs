//! The limit of open files: raised as far as possible, and checked before the first connection is opened.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Error, Result};
use crate::limits::OTHER_FILES;
use crate::process::SampledProcess;

/// Raises the soft limit to the needs of one of `processes` that share `connections`. The error names the limit and the
/// remedy.
pub fn provide(connections: u32, processes: u32) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let needed = needed(connections.into(), processes.into(), OTHER_FILES, limit.maximum)?;
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        .map_err(|errno| Error::io("raising RLIMIT_NOFILE")(errno.into()))
}

fn needed(all: u64, processes: u64, other: u64, cap: Option<u64>) -> Result<u64> {
    let connections = all.div_ceil(processes.max(1));
    let needed = connections + other;
    match cap {
        Some(cap) if cap < needed => {
            let possible = cap.saturating_sub(other);
            let workers = all.div_ceil(possible.max(1));
            Err(Error::OpenFiles { needed, connections, other, cap, possible, workers })
        }
        _ => Ok(needed),
    }
}

/// The error about a server on this machine that cannot hold this many connections; `None` if its limit is high enough.
pub fn server_cap(server: &SampledProcess, connections: u32) -> Option<String> {
    let (cap, open) = server.open_files_of_all()?;
    (cap < u64::from(connections) + open).then(|| {
        format!(
            "the server (process {} with those it has started) may open {cap} files and has {open} open: it cannot hold \
             {connections} connections. Raise its limit (`ulimit -n` before it starts, LimitNOFILE= in its systemd unit) or use at most {}",
            server.pid(),
            cap.saturating_sub(open)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_that_is_met_is_named_with_what_is_possible() {
        let error = needed(20_000, 1, 64, Some(20_000)).unwrap_err().to_string();
        for part in ["20064 open files", "capped at 20000", "at most 19936 connections", "--workers 2"] {
            assert!(error.contains(part), "{error}");
        }
        let million = needed(1_000_000, 2, 64, Some(20_000)).unwrap_err().to_string();
        for part in ["500064 open files", "RLIMIT_NOFILE", "ulimit -Hn", "fs.nr_open", "--workers 51"] {
            assert!(million.contains(part), "{million}");
        }
        assert_eq!(needed(19_900, 1, 64, Some(20_000)).unwrap(), 19_964);
        assert_eq!(needed(50_000, 3, 64, Some(20_000)).unwrap(), 16_731);
        assert_eq!(needed(1_000_000, 1, 64, None).unwrap(), 1_000_064);
    }

    #[test]
    fn a_server_that_cannot_hold_the_connections_is_named() {
        let own = SampledProcess::new(std::process::id()).unwrap();
        let text = server_cap(&own, u32::MAX).unwrap();
        assert!(text.contains("cannot hold 4294967295 connections"), "{text}");
        assert_eq!(server_cap(&own, 1), None);
    }
}
