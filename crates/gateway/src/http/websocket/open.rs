//! Opens a WebSocket and runs its session.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::close_reason::CloseReason;
use super::inbound;
use super::outbound::Outbound;
use super::session::SocketSession;
use crate::acceptor::Stop;
use crate::error::ApiError;
use crate::http::connection::Connection;
use crate::http::limits::{SOCKET_MESSAGE_BYTES_MAX, SOCKET_MESSAGES_WAITING_MAX};
use crate::http::request::Params;
use crate::http::session::Session;
use crate::http::state::HttpState;

/// `GET /api/ws/plugins/telemetry?token=`
///
/// The server refuses an invalid token with close code 1008 after the upgrade, because browsers do not show a page any other
/// refusal.
pub(crate) async fn open(
    State(state): State<Arc<HttpState>>,
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
        let mut stop = state.stop.clone();
        tokio::select! {
            () = converse(&state, &token, socket) => {}
            () = Stop::Now.reached(&mut stop) => {}
        }
        // The connection counts as open until here.
        drop(connection);
    }))
}

async fn converse(state: &Arc<HttpState>, token: &str, socket: WebSocket) {
    let (sink, stream) = socket.split();
    let (sender, receiver) = mpsc::channel(SOCKET_MESSAGES_WAITING_MAX);
    let activity = inbound::Activity::default();
    let reading = inbound::read(stream, sender, &activity);
    let working = async {
        let mut outbound = Outbound::new(sink);
        let mut receiver = receiver;
        let reason = match Session::open(state, token) {
            Ok(session) => {
                let socket = SocketSession::new(Arc::clone(state), session, token.to_owned(), &activity);
                socket.run(&mut receiver, &mut outbound).await
            }
            Err(error) => Some(CloseReason::unauthenticated(&error)),
        };
        if let Some(reason) = reason {
            if reason.code != close_code::AWAY && reason.code != close_code::NORMAL {
                state.refused(reason.label);
            }
            outbound.close(&reason, &mut receiver).await;
        }
    };
    tokio::select! {
        () = working => {}
        // `working` decides when the session is over: it learns of the end of reading through the queue.
        () = async { reading.await; std::future::pending().await } => {}
    }
}
