//! The accept loop of the doors on tokio.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::gate::Gate;
use super::permit::ConnectionPermit;
use super::stop::Stop;
use crate::door::{LimitExceeded, Networks};
use crate::tls::{Listeners, Tls};

/// An accepted connection.
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    /// The client; until [`Gate::identify`] has read the header, the load balancer.
    pub(crate) peer: SocketAddr,
    /// The peer is a load balancer, and the connection begins with a header of the PROXY protocol.
    pub(crate) is_proxied: bool,
    /// The connection begins with a TLS handshake, after that header.
    pub(crate) tls: Option<Arc<Tls>>,
}

/// A door's listeners and bounds.
pub(crate) struct Acceptor {
    pub(crate) gate: Arc<Gate>,
    pub(crate) listeners: Listeners<TcpListener>,
    /// The load balancers that send a header of the PROXY protocol.
    pub(crate) proxies: Networks,
    /// Pause after the system failed to accept a connection.
    pub(crate) accept_pause: Duration,
    /// How long a stopping door waits for running requests.
    pub(crate) drain_timeout: Duration,
}

impl Acceptor {
    /// Passes each accepted connection with its permit to `serve`, which identifies the client, and each one above a limit to
    /// `reject`, which counts it, until `shutdown` ends. Then it accepts no more, signals `stop`, and waits for all connections to end: at most
    /// `drain_timeout`, and as long again for those that it cuts off.
    pub(crate) async fn run(
        self,
        stop: watch::Sender<Stop>,
        shutdown: impl Future<Output = ()> + Send,
        serve: impl Fn(Accepted, ConnectionPermit),
        reject: impl Fn(Accepted, LimitExceeded),
    ) -> io::Result<()> {
        let Self { gate, listeners, proxies, accept_pause, drain_timeout } = self;
        let name = gate.door().name();
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = accept(&listeners, &proxies) => accepted,
                () = &mut shutdown => break,
            };
            match accepted {
                Ok(accepted) => {
                    let address = (!accepted.is_proxied).then(|| accepted.peer.ip());
                    match gate.admit(address) {
                        Ok(permit) => serve(accepted, permit),
                        Err(exceeded) => reject(accepted, exceeded),
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "{name}: cannot accept a connection");
                    tokio::time::sleep(accept_pause).await;
                }
            }
        }
        drop(listeners);
        stop.send_replace(Stop::Drain);
        if timeout(drain_timeout, gate.all_closed()).await.is_err() {
            tracing::warn!(
                left = gate.open(),
                "{name}: connections are cut off because they did not end in time"
            );
            stop.send_replace(Stop::Now);
            let _ = timeout(drain_timeout, gate.all_closed()).await;
        }
        Ok(())
    }
}

async fn accept(listeners: &Listeners<TcpListener>, proxies: &Networks) -> io::Result<Accepted> {
    let accepted = |(stream, peer): (TcpStream, SocketAddr), tls| {
        let is_proxied = proxies.contain(peer.ip());
        Accepted { stream, peer, is_proxied, tls }
    };
    let plain = async { Ok(accepted(listeners.plain.accept().await?, None)) };
    let Some((listener, tls)) = &listeners.tls else { return plain.await };
    let encrypted = async { Ok(accepted(listener.accept().await?, Some(Arc::clone(tls)))) };
    tokio::select! {
        accepted = plain => accepted,
        accepted = encrypted => accepted,
    }
}
