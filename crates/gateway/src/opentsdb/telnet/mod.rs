//! The line protocol on the ports of OpenTSDB and HiTSDB, which OpenTSDB's clients call telnet.
//!
//! The first byte of a connection decides, as in OpenTSDB: HTTP methods begin with a capital letter, commands do not. The lines
//! that are read together become one batch, and the next ones are read when it is on the disk. The answer to any other command than
//! `put` comes when the lines before it are stored.

mod batch;
mod commands;
mod replies;
mod session;

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::limits::TELNET_IDLE_TIMEOUT;
use crate::acceptor::{Stop, StopSignal};
use crate::http::limits::HEAD_TIMEOUT;
use crate::http::server::{LineProtocol, ServedLines};
use crate::http::tools::connection::Connection;
use crate::http::tools::state::HttpState;
use session::Session;

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Http,
    Lines,
}

/// The line protocol of a door, if it has one.
pub(crate) fn of_door(door: hub::Door) -> Option<LineProtocol> {
    matches!(door, hub::Door::OpenTsdb | hub::Door::HiTsdb).then_some(serve_lines as LineProtocol)
}

fn serve_lines(
    stream: TcpStream,
    state: Arc<HttpState>,
    connection: Connection,
    mut stop: StopSignal,
) -> ServedLines {
    Box::pin(async move {
        match detect(&stream, &state, &mut stop).await? {
            Speaks::Http => Some((stream, connection)),
            Speaks::Lines => {
                serve(stream, state, connection, stop).await;
                None
            }
        }
    })
}

/// What a new connection speaks; `None` if it ends before its first byte. The byte stays in the socket.
async fn detect(stream: &TcpStream, state: &HttpState, stop: &mut StopSignal) -> Option<Speaks> {
    // Collectors open a connection long before their first point. Who must log in does so at once.
    let limit = if state.options.open.is_some() { TELNET_IDLE_TIMEOUT } else { HEAD_TIMEOUT };
    let mut first = [0];
    let peeked = tokio::select! {
        peeked = timeout(limit, stream.peek(&mut first)) => peeked.ok()?.ok()?,
        () = Stop::Drain.reached(stop) => return None,
    };
    match (peeked, first[0]) {
        (0, _) => None,
        (_, b'A'..=b'Z') => Some(Speaks::Http),
        _ => Some(Speaks::Lines),
    }
}

/// Serves a connection that speaks lines until it ends or the door stops.
async fn serve(stream: TcpStream, state: Arc<HttpState>, connection: Connection, stop: StopSignal) {
    let (peer, mut cut) = (connection.peer(), stop.clone());
    let session = Session::new(stream, state, peer, stop);
    tokio::select! {
        ended = session.run() => tracing::debug!(%peer, %ended, "opentsdb: connection with lines ended"),
        () = Stop::Now.reached(&mut cut) => {}
    }
    // The connection counts as open until here.
    drop(connection);
}
