//! Connections: accepting, bounding, and ending them.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use hub::Hub;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::Service;

use super::error::{ApiError, ErrorCode};
use super::limits::{ACCEPT_PAUSE, DRAIN_TIMEOUT, HEAD_BYTES_MAX, HEAD_TIMEOUT, HEADERS_MAX, RETRY_BUSY_S};
use super::{Door, HttpOptions, router};
use crate::seats::{Seated, Seats, Stop};

/// One connection in the count of connections, as long as anything of it is left.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    _seated: Arc<Seated>,
    peer: Option<SocketAddr>,
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
        accept_pause: ACCEPT_PAUSE,
        drain_timeout: DRAIN_TIMEOUT,
    };
    let door = Arc::new(Door::new(hub, options, stopping));
    let router = router(Arc::clone(&door));
    let serve = |stream: TcpStream, seat| {
        let seated = Seated::new(Arc::clone(&door.hub), hub::Door::Http, seat);
        let connection = Connection { _seated: Arc::new(seated), peer: stream.peer_addr().ok() };
        tokio::spawn(serve_connection(stream, router.clone(), connection, door.stop.clone()));
    };
    seats.fill(stop, shutdown, serve, |stream| turn_away(&door, stream)).await
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    connection: Connection,
    stop: watch::Receiver<Stop>,
) {
    // Answers are small and complete; waiting to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        router.clone().call(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
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

/// Says no to a connection too many and closes it, without waiting for its request.
fn turn_away(door: &Door, stream: TcpStream) {
    door.refused("connections");
    let limit = door.options.connections_max;
    let message = format!("all {limit} connections of this door are in use; try again in a moment");
    let error =
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::TooManyRequests, "connections", message);
    let body = error.body();
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
