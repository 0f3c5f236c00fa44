//! The reading half of a WebSocket session.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::ws::{Message, Utf8Bytes, WebSocket, close_code};
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use super::close_reason::CloseReason;
use crate::http::limits::SOCKET_MESSAGE_BYTES_MAX;

/// Input of the client.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// A message.
    Text(Utf8Bytes),
    /// A binary message, which this protocol does not use.
    Binary,
    /// A protocol error, after which nothing more can be read.
    Broken(CloseReason),
}

/// When the client last sent something.
#[derive(Debug)]
pub(crate) struct Activity {
    begun: Instant,
    last_ms: AtomicU64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { begun: Instant::now(), last_ms: AtomicU64::new(0) }
    }
}

impl Activity {
    fn heard(&self) {
        self.last_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    pub(crate) fn silence(&self) -> Duration {
        Duration::from_millis(self.now_ms().saturating_sub(self.last_ms.load(Ordering::Relaxed)))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Reads until the client closes the socket or breaks the protocol, or the session has ended. Then it drops `messages`. The
/// library answers pings. It reads nothing while the queue is full.
pub(crate) async fn read(
    mut stream: SplitStream<WebSocket>,
    messages: mpsc::Sender<Inbound>,
    activity: &Activity,
) {
    while let Some(frame) = stream.next().await {
        activity.heard();
        let message = match frame {
            Ok(Message::Text(text)) => Inbound::Text(text),
            Ok(Message::Binary(_)) => Inbound::Binary,
            // The stream ends by itself once the closing handshake is done.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_)) => continue,
            Err(error) => match close_reason(&error) {
                Some(reason) => Inbound::Broken(reason),
                None => return,
            },
        };
        let broken = matches!(message, Inbound::Broken(_));
        if messages.send(message).await.is_err() || broken {
            return;
        }
    }
}

/// The close reason for a client whose frames cannot be read; `None` if the client is gone.
fn close_reason(error: &axum::Error) -> Option<CloseReason> {
    let cause = std::error::Error::source(error).and_then(|source| source.downcast_ref::<Error>());
    match cause {
        Some(Error::Capacity(_)) => {
            let reason = format!("a message has more than {SOCKET_MESSAGE_BYTES_MAX} bytes; send several");
            Some(CloseReason::new(close_code::SIZE, "too_large", reason))
        }
        Some(Error::Utf8(_)) => {
            Some(CloseReason::new(close_code::INVALID, "websocket", "a text is not UTF-8"))
        }
        Some(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => None,
        Some(Error::Protocol(broken)) => {
            Some(CloseReason::new(close_code::PROTOCOL, "websocket", broken.to_string()))
        }
        // The connection was closed or broke.
        _ => None,
    }
}
