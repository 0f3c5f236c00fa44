//! Connections: accepting, bounding, and ending them.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use hub::Hub;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tower::Service;

use super::error::{ApiError, ErrorCode};
use super::limits::{
    ACCEPT_PAUSE, DRAIN_TIMEOUT, HEAD_BYTES_MAX, HEAD_TIMEOUT, HEADERS_MAX, PROBE_TIMEOUT, PROBES_MAX,
    PROBES_PER_ADDRESS_MAX, RETRY_BUSY_S, WRITE_TIMEOUT,
};
use super::{Door, HttpOptions, router};
use crate::seats::{NoSeat, Seated, Seats, Stop};
use crate::sources::{SourceSeat, Sources};

/// One connection in the count of connections, as long as anything of it is left.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    _place: Arc<Place>,
    peer: Option<SocketAddr>,
}

/// What a connection takes up until it ends.
#[derive(Debug)]
enum Place {
    Seat { _seated: Seated },
    Probe { _permit: OwnedSemaphorePermit, _source: SourceSeat },
}

/// The other end of the connection that a request came by, for the log. Unknown when the connection is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) Option<SocketAddr>);

impl<S: Send + Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<Connection>().and_then(|connection| connection.peer)))
    }
}

/// Serves `listener` until `shutdown` ends. Then accepts nothing more, lets requests in flight finish, closes
/// WebSockets with code 1001, and returns after at most `DRAIN_TIMEOUT` (and a moment to drop what is left).
pub async fn serve(
    hub: Arc<Hub>,
    listener: TcpListener,
    options: HttpOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let (stop, stopping) = watch::channel(Stop::Not);
    let seats = Seats {
        door: "http",
        listener,
        connections_max: options.connections_max,
        connections_per_address_max: options.connections_per_address_max,
        accept_pause: ACCEPT_PAUSE,
        drain_timeout: DRAIN_TIMEOUT,
    };
    let door = Arc::new(Door::new(hub, options, stopping));
    let router = router(Arc::clone(&door));
    let serve = |stream: TcpStream, seat| {
        let seated = Seated::new(Arc::clone(&door.hub), hub::Door::Http, seat);
        let place = Arc::new(Place::Seat { _seated: seated });
        let connection = Connection { _place: place, peer: stream.peer_addr().ok() };
        tokio::spawn(serve_connection(stream, router.clone(), connection, door.stop.clone()));
    };
    let probes = Probes::new();
    let turn_away = |stream: TcpStream, no_seat| match probes.admit(&stream, no_seat) {
        Some(connection) => {
            tokio::spawn(serve_probe(stream, Arc::clone(&door), router.clone(), connection));
        }
        None => turn_away(&door, stream, no_seat),
    };
    seats.fill(stop, shutdown, serve, turn_away).await
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    connection: Connection,
    stop: watch::Receiver<Stop>,
) {
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

/// The stream, which fails when its peer takes nothing for too long.
fn timed(stream: TcpStream) -> Pin<Box<TimeoutStream<TcpStream>>> {
    // Answers are small and complete; waiting to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    Box::pin(stream)
}

/// The places for connections too many that only ask how the server is.
struct Probes {
    permits: Arc<Semaphore>,
    sources: Sources,
}

impl Probes {
    fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(PROBES_MAX)), sources: Sources::new(PROBES_PER_ADDRESS_MAX) }
    }

    /// A place for a connection that found none, unless its own address has taken them.
    fn admit(&self, stream: &TcpStream, no_seat: NoSeat) -> Option<Connection> {
        let peer = stream.peer_addr().ok().filter(|_| no_seat == NoSeat::Door)?;
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let source = self.sources.seat(peer.ip())?;
        let place = Arc::new(Place::Probe { _permit: permit, _source: source });
        Some(Connection { _place: place, peer: Some(peer) })
    }
}

/// Answers one request of a connection too many, if it asks how the server is.
async fn serve_probe(stream: TcpStream, door: Arc<Door>, router: Router, connection: Connection) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let is_probe = ["/healthz", "/readyz", "/metrics"].contains(&request.uri().path());
        request.extensions_mut().insert(connection.clone());
        let mut router = router.clone();
        let no_seat = (!is_probe).then(|| no_seat(&door, NoSeat::Door, None).into_response());
        async move {
            match no_seat {
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

/// Counts a connection too many and says why there is no seat for it.
fn no_seat(door: &Door, no_seat: NoSeat, address: Option<IpAddr>) -> ApiError {
    let (label, message) = match no_seat {
        NoSeat::Door => {
            let limit = door.options.connections_max;
            ("connections", format!("all {limit} connections of this door are in use; try again in a moment"))
        }
        NoSeat::Source => {
            let limit = door.options.connections_per_address_max;
            let address = address.map_or("one address".to_owned(), |address| address.to_string());
            let message = format!(
                "{address} has {limit} connections, the limit for one address \
                 (http.connections_per_address_max); close some or raise it"
            );
            ("connections_per_address", message)
        }
    };
    door.refused(label);
    let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::TooManyRequests, label, message);
    ApiError { retry_after_s: Some(RETRY_BUSY_S), ..error }
}

/// Says no to a connection too many and closes it, without waiting for its request.
fn turn_away(door: &Door, stream: TcpStream, why: NoSeat) {
    let body = no_seat(door, why, stream.peer_addr().ok().map(|peer| peer.ip())).body();
    let mut answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: {RETRY_BUSY_S}\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    if let Ok(mut stream) = stream.into_std() {
        // Non-blocking, and a new socket has room for this. What the peer has sent is taken out, so that closing does
        // not reset the connection before the answer is read. Failing is fine: the connection is closed either way.
        let _ = stream.write(&answer);
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
}
