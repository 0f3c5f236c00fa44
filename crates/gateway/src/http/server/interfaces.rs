//! The interfaces that the server does not know: its caller hands them over.

use std::pin::Pin;
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::acceptor::StopSignal;
use crate::http::tools::connection::Connection;
use crate::http::tools::route_list::Routes;
use crate::http::tools::state::HttpState;

/// Interfaces behind the ports of a door, besides those of ThingsBoard and our own.
#[derive(Debug)]
pub(crate) struct Interfaces {
    pub(crate) routes: Routes,
    /// A protocol of lines on the same port as HTTP without TLS.
    pub(crate) lines: Option<LineProtocol>,
}

/// Serves a connection that speaks lines. Returns one that speaks HTTP, and `None` after the end of any other.
pub(crate) type LineProtocol = fn(TcpStream, Arc<HttpState>, Connection, StopSignal) -> ServedLines;

/// The connection, if it speaks HTTP.
pub(crate) type ServedLines = Pin<Box<dyn Future<Output = Option<(TcpStream, Connection)>> + Send>>;
