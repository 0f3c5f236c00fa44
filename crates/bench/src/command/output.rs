//! The output of the commands.

use std::io::Write;

use load::{Error, Result};

/// Writes a line. A closed pipe is not an error: its reader needs no more output.
pub(super) fn write_line(out: &mut dyn Write, text: &str) -> Result<()> {
    match writeln!(out, "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Error::io("writing")(error)),
        _ => Ok(()),
    }
}
