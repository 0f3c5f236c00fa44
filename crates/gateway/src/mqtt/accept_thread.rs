//! The accepting thread: accepts connections and dispatches them to the workers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::ServerConfig;

use super::entry::Entry;
use super::state::MqttState;
use super::transport::Layers;
use super::worker_handle::AcceptedSocket;
use crate::tls::Listeners;

const LISTENER: Token = Token(0);
const TLS_LISTENER: Token = Token(1);
const WAKER: Token = Token(2);
/// Pause when the process has no file descriptor left.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct AcceptThread {
    state: Arc<MqttState>,
    poll: Poll,
    listeners: Listeners<TcpListener>,
    logged_at: Option<Instant>,
}

impl AcceptThread {
    pub(super) fn new(
        state: Arc<MqttState>,
        listeners: Listeners<std::net::TcpListener>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let watch = |listener: std::net::TcpListener, token| {
            listener.set_nonblocking(true)?;
            let mut listener = TcpListener::from_std(listener);
            poll.registry().register(&mut listener, token, Interest::READABLE)?;
            Ok::<_, io::Error>(listener)
        };
        let plain = watch(listeners.plain, LISTENER)?;
        let tls =
            listeners.tls.map(|(listener, tls)| Ok::<_, io::Error>((watch(listener, TLS_LISTENER)?, tls)));
        let listeners = Listeners { plain, tls: tls.transpose()? };
        let waker = Waker::new(poll.registry(), WAKER)?;
        Ok((Self { state, poll, listeners, logged_at: None }, waker))
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(8);
        let mut retry = None;
        while !self.state.is_stopping() {
            match self.poll.poll(&mut events, retry.or(Some(Duration::from_secs(1)))) {
                Ok(()) => retry = self.accept_all(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => panic!("BUG: polling an own epoll descriptor failed: {error}"),
            }
        }
    }

    /// Accepts all waiting connections of both listeners. Returns a pause if it must retry.
    fn accept_all(&mut self) -> Option<Duration> {
        let plain = self.accept_from(false);
        let tls = self.accept_from(true);
        plain.or(tls)
    }

    fn accept_from(&mut self, encrypted: bool) -> Option<Duration> {
        loop {
            let accepted = match (&self.listeners.tls, encrypted) {
                (_, false) => self.listeners.plain.accept().map(|(socket, peer)| (socket, peer, None)),
                (Some((listener, tls)), true) => {
                    listener.accept().map(|(socket, peer)| (socket, peer, Some(tls.server_config())))
                }
                (None, true) => return None,
            };
            match accepted {
                Ok((socket, peer, tls)) => self.dispatch(socket, peer, tls),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if concerns_one_peer(&error) => {}
                Err(error) => {
                    // EMFILE, ENFILE, ENOBUFS, ENOMEM: the peers stay in the backlog.
                    self.log_rate_limited(|| {
                        tracing::error!(%error, "cannot accept a connection; raise the open-file limit (ulimit -n) \
                            or lower mqtt.connections_max");
                    });
                    self.state.hub.metrics().refused(hub::Door::Mqtt, "open_files");
                    return Some(OUT_OF_FILES_PAUSE);
                }
            }
        }
    }

    fn dispatch(&mut self, socket: TcpStream, peer: SocketAddr, tls: Option<Arc<ServerConfig>>) {
        let state = &self.state;
        let is_proxied = state.options.proxies.contain(peer.ip());
        let entry = match state.gate.admit((!is_proxied).then(|| peer.ip())) {
            Ok(permit) => Entry::admitted(permit),
            Err(exceeded) => {
                state.gate.refused(&exceeded, Some(peer));
                // An answer over TLS needs a handshake, which costs more than the connection is worth.
                let permit = Arc::clone(&state.refusing).try_acquire_owned().ok().filter(|_| tls.is_none());
                let Some(permit) = permit else { return };
                Entry::refused(exceeded, permit)
            }
        };
        let layers = tls.map_or(Layers::Plain, Layers::Tls);
        let accepted = AcceptedSocket { socket, peer, is_proxied, layers, entry };
        state.next_worker().add(accepted, || state.is_stopping());
    }

    /// Logs at most once a second.
    fn log_rate_limited(&mut self, log: impl FnOnce()) {
        let now = Instant::now();
        if self.logged_at.is_none_or(|at| now - at >= Duration::from_secs(1)) {
            self.logged_at = Some(now);
            log();
        }
    }
}

fn concerns_one_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
