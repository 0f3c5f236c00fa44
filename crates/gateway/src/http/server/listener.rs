//! Starts and stops a door of HTTP, and serves its connections.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::http::Request;
use axum::response::IntoResponse;
use hub::Hub;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tower::Service;
use virtual_sensors::VirtualSensors;

use super::admission::{is_probe, reject, unavailable};
use super::door_stream::{DoorStream, timed};
use super::interfaces::{Interfaces, LineProtocol};
use super::request_body::discard_unread;
use super::routes::router;
use crate::acceptor::{
    Accepted, Acceptor, AddressLimiter, ConnectionPermit, Gate, NotIdentified, Stop, StopSignal,
};
use crate::door::{DoorLimit, LimitExceeded};
use crate::http::limits::{
    ACCEPT_PAUSE, DRAIN_TIMEOUT, HEAD_BYTES_MAX, HEAD_TIMEOUT, HEADERS_MAX, PROBE_TIMEOUT, PROBES_MAX,
    PROBES_PER_ADDRESS_MAX, TLS_PROBES_MAX,
};
use crate::http::options::HttpOptions;
use crate::http::tools::connection::Connection;
use crate::http::tools::state::HttpState;
use crate::tls::{Listeners, handshake};

/// Serves `listeners` until `shutdown` ends. Then it accepts no more, lets running requests finish, closes WebSockets with code
/// 1001, and cuts off the rest after `DRAIN_TIMEOUT`.
pub(crate) async fn serve(
    hub: Arc<Hub>,
    sensors: Arc<VirtualSensors>,
    listeners: impl Into<Listeners<TcpListener>>,
    options: HttpOptions,
    interfaces: Interfaces,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (stop, stopping) = watch::channel(Stop::Not);
    let gate = Gate::new(Arc::clone(&hub), options.door, options.limits);
    let acceptor = Acceptor {
        gate: Arc::clone(&gate),
        listeners: listeners.into(),
        proxies: options.proxies.clone(),
        accept_pause: ACCEPT_PAUSE,
        drain_timeout: DRAIN_TIMEOUT,
    };
    let state = Arc::new(HttpState::new(hub, sensors, options, gate, stopping));
    let Interfaces { routes, lines } = interfaces;
    let router = router(Arc::clone(&state), routes);
    let serve = |accepted, permit| {
        tokio::spawn(serve_accepted(accepted, Arc::clone(&state), router.clone(), lines, permit));
    };
    let probes = Probes::new();
    let reject = |accepted: Accepted, exceeded: LimitExceeded| match probes.admit(&accepted, &exceeded) {
        Some(connection) => {
            tokio::spawn(serve_probe(accepted, Arc::clone(&state), router.clone(), connection, exceeded));
        }
        None => refuse(&state, accepted, &exceeded),
    };
    acceptor.run(stop, shutdown, serve, reject).await
}

async fn serve_accepted(
    mut accepted: Accepted,
    state: Arc<HttpState>,
    router: Router,
    lines: Option<LineProtocol>,
    mut permit: ConnectionPermit,
) {
    let mut stop = state.stop.clone();
    let identified = tokio::select! {
        identified = state.gate.identify(&mut accepted, &mut permit) => identified,
        () = Stop::Drain.reached(&mut stop) => return,
    };
    match identified {
        Ok(()) => {}
        Err(NotIdentified::Header) => return,
        Err(NotIdentified::Exceeded(exceeded)) => return refuse(&state, accepted, &exceeded),
    }
    let Accepted { stream, peer, tls, .. } = accepted;
    let connection = Connection::new(permit, peer);
    // Answers are small and complete; waiting for more bytes only delays them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return serve_plain(stream, state, router, lines, connection, stop).await;
    };
    let stream = tokio::select! {
        done = handshake(&tls, &state.hub, state.options.door, stream, peer) => done,
        () = Stop::Drain.reached(&mut stop) => return,
    };
    if let Ok(stream) = stream {
        serve_connection(DoorStream::Tls(Box::new(stream)), router, connection, stop).await;
    }
}

/// Serves a connection without TLS, which may speak lines on some ports.
async fn serve_plain(
    mut stream: TcpStream,
    state: Arc<HttpState>,
    router: Router,
    lines: Option<LineProtocol>,
    mut connection: Connection,
    stop: StopSignal,
) {
    if let Some(serve_lines) = lines {
        match serve_lines(stream, state, connection, stop.clone()).await {
            Some(http) => (stream, connection) = http,
            None => return,
        }
    }
    serve_connection(DoorStream::Plain(stream), router, connection, stop).await;
}

/// Counts and closes a connection above a limit; a plain one gets an answer.
fn refuse(state: &HttpState, accepted: Accepted, exceeded: &LimitExceeded) {
    state.gate.refused(exceeded, Some(accepted.peer));
    if accepted.tls.is_none() {
        reject(accepted.stream, exceeded);
    }
}

async fn serve_connection(stream: DoorStream, router: Router, connection: Connection, stop: StopSignal) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        router.clone().call(discard_unread(request))
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(timed(stream)), service)
        .with_upgrades();
    tokio::pin!(serving);
    let (mut drain, mut cut) = (stop.clone(), stop);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = Stop::Drain.reached(&mut drain) => {
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                ended = serving.as_mut() => ended,
                () = Stop::Now.reached(&mut cut) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "http: connection ended");
    }
}

/// Permits for connections above the bound that only check the server's health.
struct Probes {
    permits: Arc<Semaphore>,
    /// Those of connections with TLS.
    tls_permits: Arc<Semaphore>,
    addresses: AddressLimiter,
}

impl Probes {
    fn new() -> Self {
        let addresses = AddressLimiter::new(PROBES_PER_ADDRESS_MAX);
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { permits: semaphore(PROBES_MAX), tls_permits: semaphore(TLS_PROBES_MAX), addresses }
    }

    /// Admits a rejected connection as a probe, unless its own address has too many connections.
    fn admit(&self, accepted: &Accepted, exceeded: &LimitExceeded) -> Option<Connection> {
        if exceeded.limit == DoorLimit::ConnectionsPerAddress {
            return None;
        }
        let permits = if accepted.tls.is_some() { &self.tls_permits } else { &self.permits };
        let permit = Arc::clone(permits).try_acquire_owned().ok()?;
        let address = self.addresses.acquire(accepted.peer.ip())?;
        Some(Connection::probe(permit, address, accepted.peer))
    }
}

/// Answers one request of a probe for the server's health, and any other request with the exceeded limit. All of it, with the
/// TLS handshake, has [`PROBE_TIMEOUT`].
async fn serve_probe(
    accepted: Accepted,
    state: Arc<HttpState>,
    router: Router,
    connection: Connection,
    exceeded: LimitExceeded,
) {
    let peer = accepted.peer;
    if timeout(PROBE_TIMEOUT, answer_probe(accepted, state, router, connection, exceeded)).await.is_err() {
        tracing::debug!(%peer, "http: a connection above the bound was too slow");
    }
}

async fn answer_probe(
    mut accepted: Accepted,
    state: Arc<HttpState>,
    router: Router,
    connection: Connection,
    exceeded: LimitExceeded,
) {
    if state.gate.read_header(&mut accepted).await.is_err() {
        return;
    }
    let Accepted { stream, peer, tls, .. } = accepted;
    let _ = stream.set_nodelay(true);
    let stream = match tls {
        None => DoorStream::Plain(stream),
        Some(tls) => match handshake(&tls, &state.hub, state.options.door, stream, peer).await {
            Ok(stream) => DoorStream::Tls(Box::new(stream)),
            Err(_) => return,
        },
    };
    let service = service_fn(move |mut request: Request<Incoming>| {
        let is_probe = is_probe(request.uri().path());
        request.extensions_mut().insert(connection.clone());
        let mut router = router.clone();
        let state = Arc::clone(&state);
        async move {
            let request = discard_unread(request);
            if is_probe {
                return router.call(request).await;
            }
            state.gate.refused(&exceeded, Some(peer));
            Ok(unavailable(&exceeded).into_response())
        }
    });
    let serving = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(timed(stream)), service);
    if let Err(error) = serving.await {
        tracing::debug!(%error, "http: connection ended");
    }
}
