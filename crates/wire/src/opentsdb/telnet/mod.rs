//! OpenTSDB's line protocol, which its clients call telnet: a command a line, such as `put metric timestamp value tag=value ...`.
//!
//! [`LineCutter`] cuts what a socket delivers into lines, [`Command`] distinguishes the commands, and [`PutLine`] reads a point. None
//! of them copies a line.

mod command;
mod lines;
mod put_line;
mod refusal;

pub use command::{Auth, AuthError, Command};
pub use lines::{Cut, LineCutter, without_end};
pub use put_line::PutLine;
pub use refusal::{LineRefusal, LineRefusalKind};

#[cfg(test)]
mod tests;
