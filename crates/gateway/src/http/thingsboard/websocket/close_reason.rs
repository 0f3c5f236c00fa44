//! The reason why the server closes a WebSocket.

use axum::extract::ws::{CloseFrame, close_code};

use crate::error::ApiError;

/// Longest reason in a close frame (RFC 6455 §5.5: 125 bytes with the code).
const CLOSE_REASON_BYTES_MAX: usize = 123;

/// The reason in the close frame of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloseReason {
    pub(super) code: u16,
    reason: String,
    pub(super) label: &'static str,
}

impl CloseReason {
    pub(super) fn new(code: u16, label: &'static str, reason: impl Into<String>) -> Self {
        Self { code, label, reason: reason.into() }
    }

    /// The session token is not valid.
    pub(super) fn unauthenticated(error: &ApiError) -> Self {
        Self::new(close_code::POLICY, error.label, error.message.clone())
    }

    pub(super) fn frame(&self) -> CloseFrame {
        let end = self.reason.floor_char_boundary(CLOSE_REASON_BYTES_MAX);
        CloseFrame { code: self.code, reason: self.reason[..end].into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = CloseReason::new(1008, "session", "é".repeat(100));
        let text = reason.frame().reason;
        assert_eq!(text.len(), 122);
        assert!(text.chars().all(|c| c == 'é'));
    }
}
