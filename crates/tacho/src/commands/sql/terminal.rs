//! The size of the terminal.

use std::io::IsTerminal;

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) columns: u16,
    pub(super) rows: u16,
}

/// The size of the terminal behind standard output; `None` if standard output is not a terminal.
pub(super) fn terminal_size() -> Option<Size> {
    let output = std::io::stdout();
    let size = output.is_terminal().then(|| rustix::termios::tcgetwinsize(&output).ok()).flatten()?;
    (size.ws_col > 0).then_some(Size { columns: size.ws_col, rows: size.ws_row })
}
