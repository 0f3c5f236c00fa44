//! Keeps keys that the user types while a query runs.
//!
//! Meanwhile the terminal does not show them, because they would appear in the middle of the answer. The line editor finds
//! them when it reads the next line. Ctrl-C still interrupts.

use std::io::{self, IsTerminal};

use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal keeps typed keys, without showing them, until this is dropped.
pub(super) struct TypedAhead {
    before: Option<Termios>,
}

impl TypedAhead {
    /// Changes the terminal, if standard input is one.
    pub(super) fn keep() -> Self {
        let input = io::stdin();
        let before = input.is_terminal().then(|| tcgetattr(&input).ok()).flatten();
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            quiet.input_modes.remove(InputModes::ICRNL);
            // If the terminal cannot be changed, it shows keys as they are typed.
            let _ = tcsetattr(&input, OptionalActions::Now, &quiet);
        }
        Self { before }
    }
}

impl Drop for TypedAhead {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
