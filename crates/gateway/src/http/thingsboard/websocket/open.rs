//! Opens a WebSocket and runs its session.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::close_reason::CloseReason;
use super::commands::Command;
use super::general_commands::{General, parse};
use super::inbound::{self, Inbound};
use super::interface::Interface;
use super::outbound::Outbound;
use super::session::SocketSession;
use crate::acceptor::Stop;
use crate::error::ApiError;
use crate::http::limits::{SOCKET_LOGIN_TIMEOUT, SOCKET_MESSAGE_BYTES_MAX, SOCKET_MESSAGES_WAITING_MAX};
use crate::http::tools::connection::Connection;
use crate::http::tools::request::Params;
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of WebSockets.
pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/ws/plugins/telemetry", open_telemetry).get("/api/ws", open_general)
}

/// `GET /api/ws/plugins/telemetry?token=`
///
/// The server refuses an invalid token with close code 1008 after the upgrade, because browsers do not show a page any other
/// refusal.
async fn open_telemetry(
    state: State<Arc<HttpState>>,
    connection: Extension<Connection>,
    params: Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let token = params.text("token").unwrap_or_default().to_owned();
    open(state, connection, Interface::Telemetry, Some(token), upgrade)
}

/// `GET /api/ws?token=`; without a token the first message has it.
async fn open_general(
    state: State<Arc<HttpState>>,
    connection: Extension<Connection>,
    params: Params,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    open(state, connection, Interface::General, params.text("token").map(str::to_owned), upgrade)
}

fn open(
    State(state): State<Arc<HttpState>>,
    Extension(connection): Extension<Connection>,
    interface: Interface,
    token: Option<String>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| {
        let why = rejection.body_text();
        ApiError::bad_request(format!(
            "this path speaks WebSocket only; connect with a WebSocket client: {why}"
        ))
    })?;
    let upgrade = upgrade.max_message_size(SOCKET_MESSAGE_BYTES_MAX).max_frame_size(SOCKET_MESSAGE_BYTES_MAX);
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut stop = state.stop.clone();
        tokio::select! {
            () = converse(&state, interface, token, socket) => {}
            () = Stop::Now.reached(&mut stop) => {}
        }
        // The connection counts as open until here.
        drop(connection);
    }))
}

async fn converse(state: &Arc<HttpState>, interface: Interface, token: Option<String>, socket: WebSocket) {
    let (sink, stream) = socket.split();
    let (sender, receiver) = mpsc::channel(SOCKET_MESSAGES_WAITING_MAX);
    let activity = inbound::Activity::default();
    let reading = inbound::read(stream, sender, &activity);
    let working = async {
        let mut outbound = Outbound::new(sink);
        let mut receiver = receiver;
        let reason = match log_in(state, token, &mut receiver).await {
            Ok(Some((session, token, commands))) => {
                match SocketSession::new(Arc::clone(state), session, token, interface, &activity) {
                    Ok(socket) => socket.run_after(commands, &mut receiver, &mut outbound).await,
                    Err(error) => Some(CloseReason::unauthenticated(&error)),
                }
            }
            Ok(None) => None,
            Err(reason) => Some(reason),
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

/// Opens the session of a token, which the first message has if the address has none. Returns the session, its token and the
/// commands that came with the token; `None` if the client is gone.
async fn log_in(
    state: &Arc<HttpState>,
    token: Option<String>,
    messages: &mut mpsc::Receiver<Inbound>,
) -> Result<Option<(Session, String, Vec<Command>)>, CloseReason> {
    let unauthenticated = |error| CloseReason::unauthenticated(&error);
    if let Some(token) = token {
        let session = Session::open(state, &token).map_err(unauthenticated)?;
        return Ok(Some((session, token, Vec::new())));
    }
    let mut stop = state.stop.clone();
    let first = tokio::select! {
        first = messages.recv() => first,
        () = sleep(SOCKET_LOGIN_TIMEOUT) => {
            let seconds = SOCKET_LOGIN_TIMEOUT.as_secs();
            let reason = format!("no authCmd came within {seconds} s; send it in the first message");
            return Err(CloseReason::new(close_code::POLICY, "session", reason));
        }
        () = Stop::Drain.reached(&mut stop) => {
            return Err(CloseReason::new(close_code::AWAY, "stop", "the server stops"));
        }
    };
    let text = match first {
        None => return Ok(None),
        Some(Inbound::Broken(reason)) => return Err(reason),
        Some(Inbound::Text(text)) => text,
        Some(Inbound::Binary) => {
            let reason = "this WebSocket takes text messages only";
            return Err(CloseReason::new(close_code::POLICY, "session", reason));
        }
    };
    let General { token, commands } = parse(&text).map_err(unauthenticated)?;
    let Some(token) = token else {
        let reason = "the first message has no authCmd; send the token from POST /api/auth/login in it";
        return Err(CloseReason::new(close_code::POLICY, "session", reason));
    };
    let session = Session::open(state, &token).map_err(unauthenticated)?;
    Ok(Some((session, token, commands)))
}
