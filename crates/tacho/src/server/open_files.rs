//! The open-file limit: every connection is a file.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many files this process may open.
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

    /// Connections of the MQTT door: all but what the rest of the process needs.
    pub(crate) fn mqtt_connections_max(self) -> usize {
        let free = self.cap.saturating_sub(gateway::mqtt::limits::FILES_RESERVED).max(1);
        usize::try_from(free).unwrap_or(usize::MAX)
    }

    /// Connections of the HTTP door, which has the rest to itself only while MQTT leaves some.
    pub(crate) fn http_connections_max(self) -> usize {
        let quarter = usize::try_from(self.cap / 4).unwrap_or(usize::MAX).max(1);
        quarter.min(gateway::http::limits::CONNECTIONS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_rest() {
        assert_eq!(OpenFiles { cap: 20_000 }.mqtt_connections_max(), 19_920);
        assert_eq!(OpenFiles { cap: 20_000 }.http_connections_max(), 1_024);
        assert_eq!(
            (OpenFiles { cap: 40 }.mqtt_connections_max(), OpenFiles { cap: 40 }.http_connections_max()),
            (1, 10)
        );
    }
}
