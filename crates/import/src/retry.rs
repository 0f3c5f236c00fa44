//! When to repeat a request that failed.

use std::time::Duration;

use clients::http::RestError;

use crate::limits::{RETRY_PAUSE, RETRY_PAUSE_MAX};

/// The pause before the same request may succeed; `None` if it never will.
pub(crate) fn pause_before_retry(error: &RestError) -> Option<Duration> {
    match error {
        RestError::Status { status: 429 | 503, retry_after, .. } => {
            Some(retry_after.unwrap_or(RETRY_PAUSE).min(RETRY_PAUSE_MAX))
        }
        RestError::Transport { .. } => Some(RETRY_PAUSE),
        RestError::Status { .. } | RestError::Answer { .. } | RestError::Tls { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16, retry_after: Option<u64>) -> RestError {
        let retry_after = retry_after.map(Duration::from_secs);
        RestError::Status { method: "POST", url: String::new(), status, message: String::new(), retry_after }
    }

    #[test]
    fn requests_are_repeated_while_a_server_is_busy_and_not_after_a_refusal() {
        assert_eq!(pause_before_retry(&status(429, Some(2))), Some(Duration::from_secs(2)));
        assert_eq!(pause_before_retry(&status(503, None)), Some(RETRY_PAUSE));
        assert_eq!(pause_before_retry(&status(503, Some(86_400))), Some(RETRY_PAUSE_MAX));
        assert_eq!(pause_before_retry(&status(400, Some(1))), None);
        assert_eq!(pause_before_retry(&status(401, None)), None);
    }
}
