//! The data that waits to be sent to a client.

use std::io;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::limits::TELNET_REPLIES_BYTES_MAX;
use crate::http::limits::WRITE_TIMEOUT;

/// Answers that wait to be sent. Many clients never read: answers to refused lines that find no room are dropped, as in OpenTSDB.
#[derive(Debug, Default)]
pub(super) struct Replies {
    bytes: Vec<u8>,
    sent: usize,
}

impl Replies {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds an answer.
    pub(super) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Adds the answer to a refused line, or returns false if there is no room for it.
    pub(super) fn offer(&mut self, text: &str) -> bool {
        let has_room = self.bytes.len() - self.sent <= TELNET_REPLIES_BYTES_MAX;
        if has_room {
            self.push(text);
        }
        has_room
    }

    /// Sends what the socket takes now.
    pub(super) fn send_some(&mut self, stream: &TcpStream) -> io::Result<()> {
        while self.sent < self.bytes.len() {
            match stream.try_write(&self.bytes[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        *self = Self::default();
        Ok(())
    }

    /// Sends everything. A client that takes nothing for too long gets an error.
    pub(super) async fn send_all(&mut self, stream: &TcpStream) -> io::Result<()> {
        loop {
            self.send_some(stream)?;
            if self.is_empty() {
                return Ok(());
            }
            timeout(WRITE_TIMEOUT, stream.writable()).await.map_err(|_| io::ErrorKind::TimedOut)??;
        }
    }
}

/// A text as one line: control characters become escapes.
pub(super) fn one_line(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_refused_lines_have_a_bound() {
        let mut replies = Replies::default();
        let line = "put: ".repeat(100);
        while replies.offer(&line) {
            assert!(replies.bytes.len() <= TELNET_REPLIES_BYTES_MAX + line.len());
        }
        assert!(replies.bytes.len() > TELNET_REPLIES_BYTES_MAX);
    }

    #[test]
    fn control_characters_do_not_end_a_line() {
        assert_eq!(one_line("a \u{e9}"), "a \u{e9}");
        assert_eq!(one_line("a\r\0\u{1b}b"), "a\\r\\u{0}\\u{1b}b");
    }
}
