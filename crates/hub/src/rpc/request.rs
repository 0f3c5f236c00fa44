//! A call of a procedure of a device.

use model::Timestamp;

use super::error::RpcError;
use super::limits::{
    RPC_METHOD_BYTES_MAX, RPC_PARAMS_BYTES_MAX, RPC_TIMEOUT_DEFAULT, RPC_TIMEOUT_MIN, RPC_WAIT_MAX,
};

/// A call of a procedure of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcCall {
    /// The procedure.
    pub method: String,
    /// Its parameters as JSON text.
    pub params: String,
    /// Whether the caller waits for no answer of the device.
    pub one_way: bool,
    /// When the call ends if the device did not take or answer it.
    pub expires_at: Timestamp,
}

impl RpcCall {
    /// The end of a call that begins at `now`: its expiration time if it has one, else its timeout. Both in milliseconds.
    pub fn end(now: Timestamp, timeout_ms: Option<i64>, expiration_time_ms: Option<i64>) -> Timestamp {
        let (default, least) = (RPC_TIMEOUT_DEFAULT.as_millis() as i64, RPC_TIMEOUT_MIN.as_millis() as i64);
        let timeout = timeout_ms.unwrap_or(default).max(least);
        let millis = expiration_time_ms.unwrap_or_else(|| now.millis().saturating_add(timeout));
        Timestamp::from_millis(millis).unwrap_or(if millis < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }

    /// Checks the sizes of a call.
    pub(crate) fn check(&self) -> Result<(), RpcError> {
        let lengths = [
            ("name of the procedure", self.method.len(), RPC_METHOD_BYTES_MAX),
            ("parameters", self.params.len(), RPC_PARAMS_BYTES_MAX),
        ];
        let over = lengths.into_iter().find(|(_, actual, limit)| actual > limit);
        match over {
            Some((what, actual, limit)) => Err(RpcError::TooLong { what, actual, limit }),
            None if self.method.is_empty() => Err(RpcError::NoMethod),
            None => Ok(()),
        }
    }

    /// Checks how long a caller would wait.
    pub(crate) fn check_wait(&self, now: Timestamp) -> Result<(), RpcError> {
        let wait_us = self.expires_at.micros().saturating_sub(now.micros());
        match wait_us > RPC_WAIT_MAX.as_micros() as i64 {
            true => Err(RpcError::TooFar { seconds: wait_us / 1_000_000, limit: RPC_WAIT_MAX.as_secs() }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_at_its_expiration_time_or_after_its_timeout() {
        let now = Timestamp::from_millis(1_000_000).unwrap();
        let end = |timeout, expiration| RpcCall::end(now, timeout, expiration).millis();
        assert_eq!(end(None, None), 1_010_000);
        assert_eq!(end(Some(7_000), None), 1_007_000);
        assert_eq!(end(Some(1), None), 1_005_000);
        assert_eq!(end(Some(7_000), Some(1_000_300)), 1_000_300);
        assert_eq!(RpcCall::end(now, None, Some(i64::MAX)), Timestamp::MAX);
    }

    #[test]
    fn sizes_and_waits_are_bounded() {
        let now = Timestamp::from_micros(0);
        let call = |method: &str, params: usize, expires_at| RpcCall {
            method: method.to_owned(),
            params: "1".repeat(params),
            one_way: true,
            expires_at: Timestamp::from_micros(expires_at),
        };
        assert!(call("reboot", RPC_PARAMS_BYTES_MAX, 0).check().is_ok());
        let long = call("reboot", RPC_PARAMS_BYTES_MAX + 1, 0).check().unwrap_err().to_string();
        assert!(long.contains("1048577") && long.contains("1048576"), "{long}");
        assert!(matches!(call("", 1, 0).check(), Err(RpcError::NoMethod)));
        assert!(call(&"x".repeat(256), 1, 0).check().is_err());
        assert!(call("reboot", 1, 3_600_000_000).check_wait(now).is_ok());
        assert!(call("reboot", 1, 3_600_000_001).check_wait(now).is_err());
    }
}
