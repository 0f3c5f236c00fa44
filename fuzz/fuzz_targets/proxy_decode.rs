//! The header of the PROXY protocol: refused or understood, and the same however it is cut; a reader is never asked to read
//! beyond the header.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::proxy::limits::V2_BYTES_MAX;
use wire::proxy::{Decoded, decode};

fuzz_target!(|input: &[u8]| {
    let whole = decode(input);
    if let Err(error) = &whole {
        assert!(!error.to_string().is_empty());
    }
    let mut read = 0;
    // Reads what the codec asks for, as a door does.
    loop {
        match decode(&input[..read]) {
            Ok(Decoded::Incomplete { needs }) => {
                assert!(needs > 0 && read + needs <= V2_BYTES_MAX, "{needs} bytes after {read}");
                if let Ok(Decoded::Header { bytes, .. }) = whole {
                    assert!(read + needs <= bytes, "{needs} bytes after {read} of a header of {bytes}");
                }
                if read + needs > input.len() {
                    // The rest of the header is missing, or the input is not a header.
                    assert!(!matches!(whole, Ok(Decoded::Header { .. })));
                    return;
                }
                read += needs;
            }
            decided => {
                assert_eq!(decided, whole, "after {read} bytes");
                return;
            }
        }
    }
});
