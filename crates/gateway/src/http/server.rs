//! Starts and stops the HTTP door, and serves its connections.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use hub::Hub;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tower::Service;

use super::connection::Connection;
use super::limits::{
    ACCEPT_PAUSE, DRAIN_TIMEOUT, HEAD_BYTES_MAX, HEAD_TIMEOUT, HEADERS_MAX, PROBE_TIMEOUT, PROBES_MAX,
    PROBES_PER_ADDRESS_MAX, WRITE_TIMEOUT,
};
use super::options::HttpOptions;
use super::routes::router;
use super::state::HttpState;
use crate::acceptor::{Accepted, Acceptor, AddressLimiter, Rejection, Stop, StopSignal};
use crate::error::{ApiError, ErrorCode, RETRY_BUSY_S};
use crate::tls::{Listeners, handshake};

/// Serves `listeners` until `shutdown` ends. Then it accepts no more, lets running requests finish, closes WebSockets with code
/// 1001, and cuts off the rest after `DRAIN_TIMEOUT`.
pub async fn serve(
    hub: Arc<Hub>,
    listeners: impl Into<Listeners<TcpListener>>,
    options: HttpOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (stop, stopping) = watch::channel(Stop::Not);
    let acceptor = Acceptor {
        hub: Arc::clone(&hub),
        door: hub::Door::Http,
        listeners: listeners.into(),
        connections_max: options.connections_max,
        connections_per_address_max: options.connections_per_address_max,
        accept_pause: ACCEPT_PAUSE,
        drain_timeout: DRAIN_TIMEOUT,
    };
    let state = Arc::new(HttpState::new(hub, options, stopping));
    let router = router(Arc::clone(&state));
    let serve = |accepted: Accepted, permit| {
        let connection = Connection::new(permit, accepted.stream.peer_addr().ok());
        tokio::spawn(serve_accepted(accepted, Arc::clone(&state), router.clone(), connection));
    };
    let probes = Probes::new();
    let reject = |Accepted { stream, tls }: Accepted, rejection| {
        if tls.is_some() {
            // An answer needs a handshake, which costs more than the connection is worth.
            let _ = count_rejection(&state, rejection, None);
            return;
        }
        match probes.admit(&stream, rejection) {
            Some(connection) => {
                tokio::spawn(serve_probe(stream, Arc::clone(&state), router.clone(), connection));
            }
            None => reject(&state, stream, rejection),
        }
    };
    acceptor.run(stop, shutdown, serve, reject).await
}

async fn serve_accepted(accepted: Accepted, state: Arc<HttpState>, router: Router, connection: Connection) {
    let (Accepted { stream, tls }, mut stop) = (accepted, state.stop.clone());
    // Answers are small and complete; waiting for more bytes only delays them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return serve_connection(stream, router, connection, stop).await };
    let stream = tokio::select! {
        done = handshake(&tls, &state.hub, hub::Door::Http, stream) => done,
        () = Stop::Drain.reached(&mut stop) => return,
    };
    if let Ok(stream) = stream {
        serve_connection(stream, router, connection, stop).await;
    }
}

async fn serve_connection<S>(stream: S, router: Router, connection: Connection, stop: StopSignal)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        router.clone().call(request)
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

/// A stream that fails if the peer takes no output for too long.
fn timed<S: AsyncRead + AsyncWrite>(stream: S) -> Pin<Box<TimeoutStream<S>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    Box::pin(stream)
}

/// Permits for connections above the bound that only check the server's health.
struct Probes {
    permits: Arc<Semaphore>,
    addresses: AddressLimiter,
}

impl Probes {
    fn new() -> Self {
        let addresses = AddressLimiter::new(PROBES_PER_ADDRESS_MAX);
        Self { permits: Arc::new(Semaphore::new(PROBES_MAX)), addresses }
    }

    /// Admits a rejected connection as a probe, unless its own address has too many connections.
    fn admit(&self, stream: &TcpStream, rejection: Rejection) -> Option<Connection> {
        let peer = stream.peer_addr().ok().filter(|_| rejection == Rejection::Door)?;
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let address = self.addresses.acquire(peer.ip())?;
        Some(Connection::probe(permit, address, peer))
    }
}

/// Answers one request of a probe for the server's health.
async fn serve_probe(stream: TcpStream, state: Arc<HttpState>, router: Router, connection: Connection) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let is_probe = ["/healthz", "/readyz", "/metrics"].contains(&request.uri().path());
        request.extensions_mut().insert(connection.clone());
        let mut router = router.clone();
        let refusal = (!is_probe).then(|| count_rejection(&state, Rejection::Door, None).into_response());
        async move {
            match refusal {
                Some(answer) => Ok(answer),
                None => router.call(request).await,
            }
        }
    });
    let serving = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(timed(stream)), service);
    if let Ok(Err(error)) = timeout(PROBE_TIMEOUT, serving).await {
        tracing::debug!(%error, "http: connection ended");
    }
}

/// Counts a rejected connection. Returns the error for its client.
fn count_rejection(state: &HttpState, rejection: Rejection, address: Option<IpAddr>) -> ApiError {
    let (label, message) = match rejection {
        Rejection::Door => {
            let limit = state.options.connections_max;
            ("connections", format!("all {limit} connections of this door are in use; try again in a moment"))
        }
        Rejection::Address => {
            let limit = state.options.connections_per_address_max;
            let address = address.map_or("one address".to_owned(), |address| address.to_string());
            let message = format!(
                "{address} has {limit} connections, the limit for one address \
                 (http.connections_per_address_max); close some or raise it"
            );
            ("connections_per_address", message)
        }
    };
    state.refused(label);
    let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::TooManyRequests, label, message);
    ApiError { retry_after_s: Some(RETRY_BUSY_S), ..error }
}

/// Answers a rejected connection and closes it, without waiting for its request.
fn reject(state: &HttpState, stream: TcpStream, rejection: Rejection) {
    let body = count_rejection(state, rejection, stream.peer_addr().ok().map(|peer| peer.ip())).body();
    let mut answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: {RETRY_BUSY_S}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    if let Ok(mut stream) = stream.into_std() {
        // The socket does not block, and a new one has room for the answer. Reading the request keeps the close from
        // resetting the connection before the peer has read the answer. Errors do not matter: the connection is closed anyway.
        let _ = stream.write(&answer);
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
}
