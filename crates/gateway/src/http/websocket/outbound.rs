//! The writing half of a WebSocket session.

use axum::extract::ws::{Message, WebSocket};
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Goodbye;
use super::inbound::Inbound;
use crate::http::limits::{SOCKET_CLOSE_TIMEOUT, SOCKET_SEND_TIMEOUT};

/// The client is gone or takes nothing any more: there is nobody to tell anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Sends to the client. Nothing is queued here beyond what the library buffers of one message: who waits for the
/// client is the session.
#[derive(Debug)]
pub(crate) struct Outbound {
    sink: SplitSink<WebSocket, Message>,
}

impl Outbound {
    pub(crate) fn new(sink: SplitSink<WebSocket, Message>) -> Self {
        Self { sink }
    }

    /// Hands a message over; it may stay in the buffer until [`flush`](Self::flush).
    pub(crate) async fn send(&mut self, text: String) -> Result<(), Gone> {
        in_time(self.sink.feed(Message::Text(text.into()))).await
    }

    /// The same for a binary message.
    pub(crate) async fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<(), Gone> {
        in_time(self.sink.feed(Message::Binary(bytes.into()))).await
    }

    pub(crate) async fn ping(&mut self) -> Result<(), Gone> {
        in_time(self.sink.send(Message::Ping(Default::default()))).await
    }

    pub(crate) async fn flush(&mut self) -> Result<(), Gone> {
        in_time(self.sink.flush()).await
    }

    /// Says goodbye and waits a moment for the client to do the same.
    pub(crate) async fn close(&mut self, goodbye: &Goodbye, messages: &mut mpsc::Receiver<Inbound>) {
        let handshake = async {
            if self.sink.send(Message::Close(Some(goodbye.frame()))).await.is_ok() {
                while messages.recv().await.is_some() {}
            }
        };
        // Who does not answer is closed without an answer.
        let _ = timeout(SOCKET_CLOSE_TIMEOUT, handshake).await;
    }
}

async fn in_time<E>(sending: impl Future<Output = Result<(), E>>) -> Result<(), Gone> {
    match timeout(SOCKET_SEND_TIMEOUT, sending).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}
