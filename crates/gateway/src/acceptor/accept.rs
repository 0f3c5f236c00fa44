//! The accept loop of a door.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hub::Hub;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::per_address::AddressLimiter;
use super::permit::ConnectionPermit;
use super::stop::Stop;
use crate::tls::{Listeners, Tls};

/// The bound that a rejected connection exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The connections of the door.
    Door,
    /// The connections of the peer's address.
    Address,
}

/// An accepted connection.
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    /// The connection begins with a TLS handshake.
    pub(crate) tls: Option<Arc<Tls>>,
}

/// A door's listeners and bounds.
pub(crate) struct Acceptor {
    pub(crate) hub: Arc<Hub>,
    pub(crate) door: hub::Door,
    pub(crate) listeners: Listeners<TcpListener>,
    /// Connections at once.
    pub(crate) connections_max: usize,
    /// Connections at once from one address.
    pub(crate) connections_per_address_max: usize,
    /// Pause after the system failed to accept a connection.
    pub(crate) accept_pause: Duration,
    /// How long a stopping door waits for running requests.
    pub(crate) drain_timeout: Duration,
}

impl Acceptor {
    /// Passes each accepted connection with its permit to `serve`, and each one above a bound to `reject`, until `shutdown`
    /// ends. Then it accepts no more, signals `stop`, and waits for all connections to end: at most `drain_timeout`, and as
    /// long again for those that it cuts off.
    pub(crate) async fn run(
        self,
        stop: watch::Sender<Stop>,
        shutdown: impl Future<Output = ()> + Send,
        serve: impl Fn(Accepted, ConnectionPermit),
        reject: impl Fn(Accepted, Rejection),
    ) -> io::Result<()> {
        let Self {
            hub,
            door,
            listeners,
            connections_max,
            connections_per_address_max,
            accept_pause,
            drain_timeout,
        } = self;
        let name = door.name();
        let permits_max = u32::try_from(connections_max.max(1)).unwrap_or(u32::MAX >> 4);
        let permits = Arc::new(Semaphore::new(permits_max as usize));
        let addresses = AddressLimiter::new(connections_per_address_max);
        let permit = |peer: SocketAddr| {
            let permit = Arc::clone(&permits).try_acquire_owned().map_err(|_| Rejection::Door)?;
            let address = addresses.acquire(peer.ip()).ok_or(Rejection::Address)?;
            Ok(ConnectionPermit::new(Arc::clone(&hub), door, permit, address))
        };
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = accept(&listeners) => accepted,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok((accepted, peer)) => match permit(peer) {
                    Ok(permit) => serve(accepted, permit),
                    Err(rejection) => reject(accepted, rejection),
                },
                Err(error) => {
                    tracing::warn!(%error, "{name}: cannot accept a connection");
                    tokio::time::sleep(accept_pause).await;
                }
            }
        }
        drop(listeners);
        stop.send_replace(Stop::Drain);
        let all_closed = || timeout(drain_timeout, permits.acquire_many(permits_max));
        if all_closed().await.is_err() {
            let left = permits_max as usize - permits.available_permits();
            tracing::warn!(left, "{name}: connections are cut off because they did not end in time");
            stop.send_replace(Stop::Now);
            let _ = all_closed().await;
        }
        Ok(())
    }
}

async fn accept(listeners: &Listeners<TcpListener>) -> io::Result<(Accepted, SocketAddr)> {
    let plain = async {
        let (stream, peer) = listeners.plain.accept().await?;
        Ok((Accepted { stream, tls: None }, peer))
    };
    let Some((listener, tls)) = &listeners.tls else { return plain.await };
    let encrypted = async {
        let (stream, peer) = listener.accept().await?;
        Ok((Accepted { stream, tls: Some(Arc::clone(tls)) }, peer))
    };
    tokio::select! {
        accepted = plain => accepted,
        accepted = encrypted => accepted,
    }
}
