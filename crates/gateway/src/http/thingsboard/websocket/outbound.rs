//! The writing half of a WebSocket session.

use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::close_reason::CloseReason;
use super::inbound::Inbound;
use crate::http::limits::{SOCKET_CLOSE_TIMEOUT, SOCKET_SEND_TIMEOUT};

/// The client is gone or accepts no more output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Disconnected;

/// Sends to the client. It queues nothing beyond one message that the library buffers: the session itself waits for the
/// client.
#[derive(Debug)]
pub(crate) struct Outbound {
    sink: SplitSink<WebSocket, Message>,
}

impl Outbound {
    pub(crate) fn new(sink: SplitSink<WebSocket, Message>) -> Self {
        Self { sink }
    }

    /// Sends a text message. It may stay in the buffer until [`flush`](Self::flush).
    pub(crate) async fn send(&mut self, text: String) -> Result<(), Disconnected> {
        in_time(self.sink.feed(Message::Text(text.into()))).await
    }

    /// Sends a binary message in the same way.
    pub(crate) async fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<(), Disconnected> {
        in_time(self.sink.feed(Message::Binary(bytes.into()))).await
    }

    pub(crate) async fn ping(&mut self) -> Result<(), Disconnected> {
        in_time(self.sink.send(Message::Ping(Default::default()))).await
    }

    pub(crate) async fn flush(&mut self) -> Result<(), Disconnected> {
        in_time(self.sink.flush()).await
    }

    /// Sends the close frame and waits a moment for that of the client.
    pub(crate) async fn close(&mut self, reason: &CloseReason, messages: &mut mpsc::Receiver<Inbound>) {
        let handshake = async {
            if self.sink.send(Message::Close(Some(reason.frame()))).await.is_ok() {
                while messages.recv().await.is_some() {}
            }
        };
        // A client that does not answer is closed anyway.
        let _ = timeout(SOCKET_CLOSE_TIMEOUT, handshake).await;
    }
}

async fn in_time<E>(sending: impl Future<Output = Result<(), E>>) -> Result<(), Disconnected> {
    match timeout(SOCKET_SEND_TIMEOUT, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Disconnected),
    }
}
