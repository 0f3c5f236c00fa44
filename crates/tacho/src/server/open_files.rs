//! The open-file limit. Each connection is an open file.

use gateway::mqtt::limits::FILES_RESERVED;
use model::limits::PART_READERS_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of files that this process may open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFiles {
    /// The soft limit after raising it to the hard one.
    pub cap: u64,
}

impl OpenFiles {
    /// Raises the soft limit to the hard one.
    pub(crate) fn raise() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let unlimited = u64::MAX;
        let (soft, hard) = (limit.current.unwrap_or(unlimited), limit.maximum.unwrap_or(unlimited));
        if soft < hard
            && let Err(error) =
                setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
        {
            tracing::warn!(%error, soft, hard, "cannot raise the open-file limit");
            return Self { cap: soft };
        }
        Self { cap: hard }
    }

    /// Connections of the MQTT door: the limit minus the needs of the rest of the process, which has `others` connections.
    pub(crate) fn mqtt_connections_max(self, others: usize) -> usize {
        let others = others as u64 + PART_READERS_MAX as u64 + FILES_RESERVED;
        let free = self.cap.saturating_sub(others).max(1);
        usize::try_from(free).unwrap_or(usize::MAX)
    }

    /// Connections of the HTTP door.
    pub(crate) fn http_connections_max(self) -> usize {
        let quarter = usize::try_from(self.cap / 4).unwrap_or(usize::MAX).max(1);
        quarter.min(gateway::http::limits::CONNECTIONS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_file_descriptors_for_other_files() {
        let files = OpenFiles { cap: 20_000 };
        assert_eq!(files.http_connections_max(), 1_024);
        assert_eq!(files.mqtt_connections_max(1_024 + 100), 20_000 - 1_124 - 128 - 256);
        assert_eq!(files.mqtt_connections_max(1_024), 18_592, "docs/ops/limits.md has this example");
        let few = OpenFiles { cap: 40 };
        assert_eq!((few.mqtt_connections_max(10), few.http_connections_max()), (1, 10));
    }
}
