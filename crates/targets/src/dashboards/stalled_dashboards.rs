//! Dashboards that subscribe and then never read: what they cost the server, and what it does with them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use load::limits::{HANDSHAKE_TIMEOUT_S, READ_BYTES};
use load::{Error, Result};
use socket2::{Domain, Protocol, Socket, Type};

use super::live::{Live, LiveConfig};
use super::newest_messages::NewestMessages;
use crate::limits::{SOCKET_UNREAD_DRAINED_BYTES, SOCKET_UNREAD_RECEIVE_BYTES};

/// The sockets of a phase.
#[derive(Debug, Default)]
pub(super) struct UnreadSockets {
    streams: Vec<TcpStream>,
}

impl UnreadSockets {
    /// Opens sockets and reads their first answers. `first` is the number of the first one among all sockets of the phase.
    pub(super) fn open(
        (first, count): (u32, u32),
        server: SocketAddr,
        config: &LiveConfig,
        followed: &NewestMessages,
    ) -> Result<Self> {
        let streams = (first..first + count).map(|number| {
            subscribe(number, server, config, followed).map_err(|what| {
                Error::Options(format!("socket {} of {count} that never read: {what}", number - first + 1))
            })
        });
        Ok(Self { streams: streams.collect::<Result<_>>()? })
    }

    /// How many of them the server has closed. They are read for that.
    pub(super) fn closed(self) -> usize {
        self.streams.into_iter().filter(is_closed).count()
    }
}

fn subscribe(
    number: u32,
    server: SocketAddr,
    config: &LiveConfig,
    followed: &NewestMessages,
) -> std::result::Result<TcpStream, String> {
    let mut stream = connect(server).map_err(|error| error.to_string())?;
    let mut live = Live::new(number, config, followed);
    let (mut out, mut inbound, mut buffer) = (Vec::new(), Vec::new(), vec![0; READ_BYTES]);
    live.open(config, &mut out);
    loop {
        stream.write_all(&out).map_err(|error| error.to_string())?;
        out.clear();
        let count = stream.read(&mut buffer).map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("closed by the server".to_owned());
        }
        inbound.extend_from_slice(&buffer[..count]);
        let received = live.receive(config, followed, &inbound, &mut out, &mut |_| ())?;
        inbound.drain(..received.used);
        if received.ready {
            return Ok(stream);
        }
    }
}

fn connect(server: SocketAddr) -> std::io::Result<TcpStream> {
    let timeout = Duration::from_secs(HANDSHAKE_TIMEOUT_S);
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
    // Before the connect, which announces it.
    socket.set_recv_buffer_size(SOCKET_UNREAD_RECEIVE_BYTES)?;
    socket.connect_timeout(&server.into(), timeout)?;
    socket.set_read_timeout(Some(timeout))?;
    Ok(socket.into())
}

/// Reads what buffers hold, up to the end of the connection.
fn is_closed(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let (mut reader, mut buffer, mut read) = (stream, vec![0; READ_BYTES], 0);
    while read < SOCKET_UNREAD_DRAINED_BYTES {
        match reader.read(&mut buffer) {
            Ok(0) => return true,
            Ok(count) => read += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_socket_that_the_server_closed_is_told_from_one_that_it_holds() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = connect(listener.local_addr().unwrap()).unwrap();
        let (mut held, _) = listener.accept().unwrap();
        held.write_all(b"unread").unwrap();
        let ended = connect(listener.local_addr().unwrap()).unwrap();
        let (mut gone, _) = listener.accept().unwrap();
        gone.write_all(b"unread").unwrap();
        drop(gone);
        // The end is there as soon as it can be waited for.
        let mut rest = Vec::new();
        (&ended).read_to_end(&mut rest).unwrap();
        assert_eq!(UnreadSockets { streams: vec![open, ended] }.closed(), 1);
        drop(held);
    }
}
