//! What listening doors have in common: accepting, a bounded number of connections, and ending in steps.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hub::Hub;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use crate::sources::{SourceSeat, Sources};

/// How far a door has come with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// Serving.
    Not,
    /// What runs ends; who only listens or is idle is closed.
    Drain,
    /// Whatever is left is dropped.
    Now,
}

impl Stop {
    /// Waits until the door has come this far.
    pub(crate) async fn reached(self, signal: &mut watch::Receiver<Self>) {
        // The sender lives until all connections are gone; an error would mean that the door is gone.
        let _ = signal.wait_for(|stop| *stop >= self).await;
    }
}

/// A connection that has a seat and is counted, until this is dropped: also when what serves it panics.
#[derive(Debug)]
pub(crate) struct Seated {
    hub: Arc<Hub>,
    door: hub::Door,
    _seat: Seat,
}

impl Seated {
    pub(crate) fn new(hub: Arc<Hub>, door: hub::Door, seat: Seat) -> Self {
        let counters = hub.metrics().door(door);
        counters.connections.inc();
        counters.connections_opened.inc();
        Self { hub, door, _seat: seat }
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.hub.metrics().door(self.door).connections.dec();
    }
}

/// One place of a door, and one of those that the peer's address may have. Free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    _permit: OwnedSemaphorePermit,
    _source: SourceSeat,
}

/// Which bound a connection too many met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSeat {
    /// All seats are taken.
    Door,
    /// The peer's address has as many as it may.
    Source,
}

/// A door's listener and bounds.
pub(crate) struct Seats {
    /// The door's name in the log.
    pub(crate) door: &'static str,
    pub(crate) listener: TcpListener,
    /// Connections at once.
    pub(crate) connections_max: usize,
    /// Connections at once from one address.
    pub(crate) connections_per_address_max: usize,
    /// Pause after the system refused to accept a connection.
    pub(crate) accept_pause: Duration,
    /// How long a stopping door waits for what runs.
    pub(crate) drain_timeout: Duration,
}

impl Seats {
    /// Gives each connection with its seat to `serve`, and those too many to `turn_away`, until `shutdown` ends. Then
    /// accepts nothing more and tells `stop`; returns when all seats are free, after at most the time for draining
    /// (and a moment to drop what is left).
    pub(crate) async fn fill(
        self,
        stop: watch::Sender<Stop>,
        shutdown: impl Future<Output = ()> + Send,
        serve: impl Fn(TcpStream, Seat),
        turn_away: impl Fn(TcpStream, NoSeat),
    ) -> io::Result<()> {
        let Self {
            door,
            listener,
            connections_max,
            connections_per_address_max,
            accept_pause,
            drain_timeout,
        } = self;
        let seats_max = u32::try_from(connections_max.max(1)).unwrap_or(u32::MAX >> 4);
        let seats = Arc::new(Semaphore::new(seats_max as usize));
        let sources = Sources::new(connections_per_address_max);
        let seat = |peer: SocketAddr| {
            let permit = Arc::clone(&seats).try_acquire_owned().map_err(|_| NoSeat::Door)?;
            let source = sources.seat(peer.ip()).ok_or(NoSeat::Source)?;
            Ok(Seat { _permit: permit, _source: source })
        };
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok((stream, peer)) => match seat(peer) {
                    Ok(seat) => serve(stream, seat),
                    Err(no_seat) => turn_away(stream, no_seat),
                },
                Err(error) => {
                    tracing::warn!(%error, "{door}: cannot accept a connection");
                    tokio::time::sleep(accept_pause).await;
                }
            }
        }
        drop(listener);
        stop.send_replace(Stop::Drain);
        let all_gone = || timeout(drain_timeout, seats.acquire_many(seats_max));
        if all_gone().await.is_err() {
            let left = seats_max as usize - seats.available_permits();
            tracing::warn!(left, "{door}: connections are cut off because they did not end in time");
            stop.send_replace(Stop::Now);
            let _ = all_gone().await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use hub::registry::Registry;
    use model::limits::IngestLimits;
    use store::MemoryStore;

    use super::*;

    #[test]
    fn a_connection_whose_server_panics_is_counted_no_more_and_frees_its_seat() {
        let directory = tempfile::tempdir().unwrap();
        let (registry, _) = Registry::open(&directory.path().join("registry.db")).unwrap();
        let store = Arc::new(MemoryStore::new());
        let hub = Hub::start(store, registry, IngestLimits::default(), Arc::new(hub::Metrics::new()));
        let seats = Arc::new(Semaphore::new(1));
        let source = Sources::new(1).seat([127, 0, 0, 1].into()).unwrap();
        let seat = Seat { _permit: Arc::clone(&seats).try_acquire_owned().unwrap(), _source: source };
        let seated = Seated::new(Arc::clone(&hub), hub::Door::Postgres, seat);
        let open = || hub.metrics().door(hub::Door::Postgres).connections.get();
        assert_eq!((open(), seats.available_permits()), (1, 0));
        let serve = AssertUnwindSafe(move || {
            let _seated = seated;
            panic!("a bug on purpose");
        });
        assert!(catch_unwind(serve).is_err());
        assert_eq!((open(), seats.available_permits()), (0, 1));
        hub.close().unwrap();
    }
}
