//! TLS of a connection whose owner reads and writes the socket.

use std::io::{self, ErrorKind, Read as _, Write};

use rustls::ClientConnection;

use super::error::TlsFailure;

/// The state of one connection. The owner bounds what waits in it: it gives nothing more while [`Self::wants_write`].
#[derive(Debug)]
pub struct TlsSession(Box<ClientConnection>);

impl TlsSession {
    pub(super) fn new(mut connection: ClientConnection) -> Self {
        // Bytes that were given to it must not be lost; the owner bounds them.
        connection.set_buffer_limit(None);
        Self(Box::new(connection))
    }

    /// Whether the handshake is under way.
    pub fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Whether bytes wait for the socket.
    pub fn wants_write(&self) -> bool {
        self.0.wants_write()
    }

    /// Encrypts bytes. During the handshake they wait for its end.
    pub fn encrypt(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.writer().write_all(bytes)
    }

    /// Writes to the socket until nothing waits or the socket accepts no more.
    pub fn flush_to(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Decrypts bytes of the socket and appends their content to `out`. Answers of TLS itself may then wait for the
    /// socket.
    pub fn decrypt(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.0.read_tls(&mut bytes)? == 0 {
                // After the other side has closed its direction the library accepts no more.
                return Ok(());
            }
            let state = self.0.process_new_packets().map_err(|error| TlsFailure::new(error).into_io())?;
            let until = out.len() + state.plaintext_bytes_to_read();
            let mut from = out.len();
            out.resize(until, 0);
            while from < until {
                from += self.0.reader().read(&mut out[from..])?;
            }
        }
        Ok(())
    }

    /// Tells the server that nothing follows, as far as the socket takes it.
    pub fn close(&mut self, socket: &mut impl Write) {
        self.0.send_close_notify();
        // The connection ends anyway.
        let _ = self.flush_to(socket);
    }
}
