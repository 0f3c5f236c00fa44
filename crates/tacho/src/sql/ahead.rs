//! What is typed while a query runs is kept for the prompt.
//!
//! Meanwhile the terminal takes every key as it is and shows none: they would stand amid the answer. When the next line is
//! read they are all there, and the line editor shows them. Ctrl-C still interrupts.

use std::io::{self, IsTerminal};

use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// As long as this lives, the terminal keeps what is typed.
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
            // Where it cannot be changed, keys show as they are typed.
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
