//! `/api/ws/plugins/telemetry?token=`: ThingsBoard's WebSocket for live values and history.
//!
//! One session has two halves that run as one task: `inbound` reads frames into a short queue, `session` works on the
//! messages one by one, reads the store, and is the only one that writes. A client that does not read stops its own
//! session: the hub then keeps the newest value per key for it and nobody else waits.

mod commands;
mod inbound;
mod outbound;
mod reading;
mod session;
mod subscriptions;
mod update;
mod watch;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::Door;
use super::auth::Session as Access;
use super::error::ApiError;
use super::limits::{SOCKET_MESSAGE_BYTES_MAX, SOCKET_MESSAGES_WAITING_MAX};
use super::request::Params;
use super::server::Connection;
use crate::seats::Stop;
use outbound::Outbound;
use session::Session;

/// Longest reason in a close frame (RFC 6455 §5.5: 125 bytes with the code).
const CLOSE_REASON_BYTES_MAX: usize = 123;

/// Why a session ends, as the client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Goodbye {
    code: u16,
    reason: String,
    label: &'static str,
}

impl Goodbye {
    fn new(code: u16, label: &'static str, reason: impl Into<String>) -> Self {
        Self { code, label, reason: reason.into() }
    }

    /// The session token is not, or no longer, good.
    fn unauthenticated(error: &ApiError) -> Self {
        Self::new(close_code::POLICY, error.label, error.message.clone())
    }

    fn frame(&self) -> CloseFrame {
        let end = self.reason.floor_char_boundary(CLOSE_REASON_BYTES_MAX);
        CloseFrame { code: self.code, reason: self.reason[..end].into() }
    }
}

/// `GET /api/ws/plugins/telemetry?token=`
///
/// A token that opens nothing is told by close code 1008 after the upgrade: browsers show a page no other refusal.
pub(crate) async fn open(
    State(door): State<Arc<Door>>,
    Extension(connection): Extension<Connection>,
    params: Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| {
        let why = rejection.body_text();
        ApiError::bad_request(format!(
            "this path speaks WebSocket only; connect with a WebSocket client: {why}"
        ))
    })?;
    let token = params.text("token").unwrap_or_default().to_owned();
    let upgrade = upgrade.max_message_size(SOCKET_MESSAGE_BYTES_MAX).max_frame_size(SOCKET_MESSAGE_BYTES_MAX);
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut stop = door.stop.clone();
        tokio::select! {
            () = converse(&door, &token, socket) => {}
            () = Stop::Now.reached(&mut stop) => {}
        }
        // Counted as a connection until here.
        drop(connection);
    }))
}

async fn converse(door: &Arc<Door>, token: &str, socket: WebSocket) {
    let (sink, stream) = socket.split();
    let (sender, receiver) = mpsc::channel(SOCKET_MESSAGES_WAITING_MAX);
    let activity = inbound::Activity::default();
    let reading = inbound::read(stream, sender, &activity);
    let working = async {
        let mut outbound = Outbound::new(sink);
        let mut receiver = receiver;
        let goodbye = match Access::open(door, token) {
            Ok(access) => {
                let session = Session::new(Arc::clone(door), access, token.to_owned(), &activity);
                session.run(&mut receiver, &mut outbound).await
            }
            Err(error) => Some(Goodbye::unauthenticated(&error)),
        };
        if let Some(goodbye) = goodbye {
            if goodbye.code != close_code::AWAY && goodbye.code != close_code::NORMAL {
                door.refused(goodbye.label);
            }
            outbound.close(&goodbye, &mut receiver).await;
        }
    };
    tokio::select! {
        () = working => {}
        // The worker decides when the session is over: it learns of the end of reading through the queue.
        () = async { reading.await; std::future::pending().await } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let goodbye = Goodbye::new(1008, "session", "é".repeat(100));
        let reason = goodbye.frame().reason;
        assert_eq!(reason.len(), 122);
        assert!(reason.chars().all(|c| c == 'é'));
    }
}
