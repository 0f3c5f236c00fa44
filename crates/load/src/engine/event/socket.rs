//! The socket of a connection: its options, the kernel's information about it, and the meaning of its errors.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use nix::sys::socket::sockopt::{GetStruct, IpBindAddressNoPort};
use nix::sys::socket::{getsockopt, setsockopt};
use rustix::io::Errno;
use socket2::{Domain, Protocol as Transport, SockRef, Socket, TcpKeepalive, Type};

use super::timestamped_reader::ask_for_stamps;

/// The 32-bit words of `struct tcp_info` (linux/tcp.h) up to and including `tcpi_total_retrans`. Every supported kernel
/// has them.
const INFO_WORDS: usize = 26;

/// The part of `TCP_INFO` that this crate reads.
#[derive(Debug, Clone, Copy)]
struct TcpInfo;
nix::getsockopt_impl!(
    TcpInfo,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    [u32; INFO_WORDS],
    GetStruct<[u32; INFO_WORDS]>
);

/// The target of a connect and the options of its socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectOptions {
    pub(super) target: SocketAddr,
    /// The local address; `None` leaves the choice to the kernel.
    pub(super) source: Option<IpAddr>,
    /// See [`crate::engine::Connect::keep_alive`].
    pub(super) keep_alive: Option<Duration>,
    /// Whether the kernel stamps received data.
    pub(super) stamped: bool,
}

/// Starts a non-blocking connect.
pub(super) fn connect(options: &ConnectOptions) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(options.target), Type::STREAM, Some(Transport::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(interval) = options.keep_alive {
        let keep_alive = TcpKeepalive::new().with_time(interval).with_interval(interval);
        SockRef::from(&socket).set_tcp_keepalive(&keep_alive)?;
    }
    if let Some(source) = options.source {
        // The kernel chooses the port at connect, when it knows the target, so that several connections can share a
        // port. Without the option (before Linux 4.2, IPv6) fewer ports are available.
        let _ = setsockopt(&socket, IpBindAddressNoPort, &true);
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    match socket.connect(&options.target.into()) {
        // A non-blocking connect begins with EINPROGRESS (115).
        Err(e) if e.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(e),
        _ => {
            let stream = socket.into();
            if options.stamped {
                ask_for_stamps(&stream);
            }
            Ok(stream)
        }
    }
}

/// The number of segments that the kernel sent again on this connection; 0 if it does not say.
pub(super) fn repeated(stream: &TcpStream) -> u32 {
    getsockopt(stream, TcpInfo).map_or(0, |info| info[INFO_WORDS - 1])
}

/// Whether this process is at a limit, and not the network or the server.
pub(super) fn is_local_limit(error: &io::Error) -> bool {
    let local = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    local.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// The reason why a connection could not be opened.
pub(super) fn describe(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused if error.raw_os_error().is_some() => REFUSED.to_owned(),
        ErrorKind::ConnectionReset => RESET.to_owned(),
        ErrorKind::AddrNotAvailable => NO_PORT.to_owned(),
        _ => error.to_string(),
    }
}

/// RST in answer to SYN.
pub const REFUSED: &str = "connection refused (nobody listens)";
/// RST after the handshake.
pub const RESET: &str = "connection reset";
/// A limit of this machine, not of the server.
pub const NO_PORT: &str = "no local port left (net.ipv4.ip_local_port_range)";

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_has_its_source_and_repeats_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let options = ConnectOptions {
            target: listener.local_addr().unwrap(),
            source: Some("127.0.0.9".parse().unwrap()),
            keep_alive: Some(Duration::from_secs(30)),
            stamped: true,
        };
        let stream = connect(&options).unwrap();
        let (_accepted, from) = listener.accept().unwrap();
        assert_eq!(from.ip().to_string(), "127.0.0.9");
        assert_eq!(repeated(&stream), 0);
        assert!(SockRef::from(&stream).keepalive().unwrap());
    }

    #[test]
    fn errors_have_their_cause() {
        let text = |errno: Errno| describe(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert_eq!(text(Errno::CONNREFUSED), REFUSED);
        assert_eq!(text(Errno::CONNRESET), RESET);
        assert_eq!(text(Errno::ADDRNOTAVAIL), NO_PORT);
        assert!(is_local_limit(&io::Error::from_raw_os_error(Errno::MFILE.raw_os_error())));
        assert!(!is_local_limit(&io::Error::from_raw_os_error(Errno::CONNREFUSED.raw_os_error())));
    }
}
