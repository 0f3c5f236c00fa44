//! Calls by devices, and their answers.

use super::fields::{put_number, put_text};
use super::{ProtobufError, two_texts};

/// Reads a call by a device: `RpcRequest`. Returns the procedure; no procedure of the server has parameters.
///
/// # Errors
/// The payload is not such a message, or names no procedure.
pub fn read_call(payload: &[u8]) -> Result<&str, ProtobufError> {
    const MESSAGE: &str = "RpcRequest";
    match two_texts(payload, MESSAGE)? {
        ["", _] => Err(ProtobufError { message: MESSAGE, reason: "it has no method" }),
        [method, _] => Ok(method),
    }
}

/// The answer to a call by a device: `ToServerRpcResponseMsg`. `answer` is JSON text.
pub fn answer_to_call(id: i32, answer: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, u64::from(id.unsigned_abs()));
    put_text(&mut out, 2, answer);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_and_answered() {
        assert_eq!(read_call(b"\x0a\x01m\x12\x02{}"), Ok("m"));
        assert!(read_call(b"\x12\x02{}").unwrap_err().to_string().contains("no method"));
        assert_eq!(answer_to_call(3, "{}"), b"\x08\x03\x12\x02{}");
    }
}
