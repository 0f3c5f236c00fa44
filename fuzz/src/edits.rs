//! Damage to a file, described by the fuzzer's input: small changes to valid bytes reach further than random bytes.

/// No edit makes a file longer than this.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// Applies a script to a file. Four bytes make an edit: what, where (two bytes, little-endian, modulo the length), and
/// how many bytes or which ones; an insertion takes the bytes that follow. What does not fit is cut off.
pub fn apply(mut script: &[u8], file: &[u8]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    while let [what, low, high, argument, rest @ ..] = script {
        script = rest;
        let at = usize::from(u16::from_le_bytes([*low, *high])) % (bytes.len() + 1);
        let end = bytes.len().min(at + usize::from(*argument));
        match what % 6 {
            0 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= argument;
                }
            }
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let (inserted, rest) = script.split_at(script.len().min(usize::from(*argument % 64)));
                script = rest;
                bytes.splice(at..at, inserted.iter().copied());
            }
            4 => bytes[at..end].fill(0),
            _ => bytes.extend_from_within(at..end),
        }
        bytes.truncate(FILE_BYTES_MAX);
    }
    bytes
}
