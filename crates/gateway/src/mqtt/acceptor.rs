//! Accepts connections and deals them out to the workers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use super::Door;

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
/// How long to wait when the process has no file descriptor left.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Acceptor {
    door: Arc<Door>,
    poll: Poll,
    listener: TcpListener,
    next_worker: usize,
    complained_at: Option<Instant>,
}

impl Acceptor {
    pub(super) fn new(door: Arc<Door>, listener: std::net::TcpListener) -> io::Result<(Self, Waker)> {
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        Ok((Self { door, poll, listener, next_worker: 0, complained_at: None }, waker))
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(8);
        let mut retry = None;
        while !self.door.is_stopping() {
            match self.poll.poll(&mut events, retry.or(Some(Duration::from_secs(1)))) {
                Ok(()) => retry = self.accept_all(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => panic!("BUG: polling an own epoll descriptor failed: {error}"),
            }
        }
    }

    /// Accepts what waits; returns a pause after which to try again.
    fn accept_all(&mut self) -> Option<Duration> {
        loop {
            match self.listener.accept() {
                Ok((socket, peer)) => self.deal_out(socket, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if is_about_one_peer(&error) => {}
                Err(error) => {
                    // EMFILE, ENFILE, ENOBUFS, ENOMEM: waiting peers stay in the backlog.
                    self.complain(|| {
                        tracing::error!(%error, "cannot accept a connection; raise the open-file limit (ulimit -n) \
                            or lower mqtt.connections_max");
                    });
                    self.door.hub.metrics().refused(hub::Door::Mqtt, "open_files");
                    return Some(OUT_OF_FILES_PAUSE);
                }
            }
        }
    }

    fn deal_out(&mut self, socket: TcpStream, peer: SocketAddr) {
        let open = self.door.connections.fetch_add(1, Ordering::AcqRel);
        let limit = self.door.options.connections_max;
        if open >= limit {
            self.door.connections.fetch_sub(1, Ordering::AcqRel);
            self.door.hub.metrics().refused(hub::Door::Mqtt, "connections_max");
            self.complain(
                || tracing::warn!(%peer, limit, "refused a connection: mqtt.connections_max is reached"),
            );
            return;
        }
        let metrics = self.door.hub.metrics().door(hub::Door::Mqtt);
        metrics.connections.inc();
        metrics.connections_opened.inc();
        self.next_worker = (self.next_worker + 1) % self.door.inboxes.len();
        self.door.inboxes[self.next_worker].add(socket, peer, &self.door);
    }

    /// Once a second is enough to be seen.
    fn complain(&mut self, log: impl FnOnce()) {
        let now = Instant::now();
        if self.complained_at.is_none_or(|at| now - at >= Duration::from_secs(1)) {
            self.complained_at = Some(now);
            log();
        }
    }
}

fn is_about_one_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}
