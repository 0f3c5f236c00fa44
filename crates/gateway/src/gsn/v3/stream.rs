//! The rows of a sensor as it makes them, over a WebSocket.
//!
//! A client gets what is durable. One that reads too slowly loses rows, as in GSN: the newest value of each field stays.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use tokio::time::{Instant, interval_at, timeout};

use super::super::live_rows::{LiveRows, Login};
use super::super::refusal::Refusal;
use super::super::sensor::Sensor;
use super::stream_text::messages;
use crate::acceptor::Stop;
use crate::http::limits::{
    SOCKET_CLOSE_TIMEOUT, SOCKET_MESSAGE_BYTES_MAX, SOCKET_PING_INTERVAL, SOCKET_SEND_TIMEOUT,
    SOCKET_SILENCE_MAX,
};
use crate::http::tools::connection::{Connection, Peer};
use crate::http::tools::request::{Params, PathOf};
use crate::http::tools::state::HttpState;

/// `GET /api/sensors/{sensor}/stream`
pub(super) async fn open(
    State(state): State<Arc<HttpState>>,
    PathOf(name): PathOf<String>,
    Extension(connection): Extension<Connection>,
    Peer(peer): Peer,
    params: Params,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let login = Login { params, headers, peer };
    let caller = login.caller(&state).await?;
    let sensor = Sensor::named(&state.sensors, &caller, &name)?;
    let device = state.hub.device_by_name(&caller, sensor.device())?;
    let upgrade = upgrade.map_err(|rejection| {
        Refusal::argument(format!(
            "this path speaks WebSocket only; connect with a WebSocket client: {}",
            rejection.body_text()
        ))
    })?;
    let upgrade = upgrade.max_message_size(SOCKET_MESSAGE_BYTES_MAX).max_frame_size(SOCKET_MESSAGE_BYTES_MAX);
    Ok(upgrade.on_upgrade(async move |mut socket| {
        let mut stop = state.stop.clone();
        let reading = state.hub.live_connection(&caller);
        let live = LiveRows::new(Arc::clone(&state.hub), caller, device, &reading);
        let close = tokio::select! {
            close = converse(&state, &login, &sensor, live, &mut socket) => close,
            overrun = reading.overrun() => Some((close_code::POLICY, overrun.to_string())),
            () = Stop::Now.reached(&mut stop) => None,
        };
        end(socket, close).await;
        // The connection counts as open until here.
        drop(connection);
    }))
}

/// Why the server closes the socket: the code and the text. `None` if the client is gone.
type Close = Option<(u16, String)>;

async fn converse(
    state: &HttpState,
    login: &Login,
    sensor: &Sensor,
    mut live: LiveRows,
    socket: &mut WebSocket,
) -> Close {
    let mut stop = state.stop.clone();
    let mut ping = interval_at(Instant::now() + SOCKET_PING_INTERVAL, SOCKET_PING_INTERVAL);
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            updates = live.next() => {
                for message in messages(sensor, &updates) {
                    send(socket, Message::Text(message.into())).await?;
                }
            }
            frame = socket.recv() => match frame {
                // A client has nothing to say here.
                Some(Ok(_)) => heard = Instant::now(),
                Some(Err(_)) | None => return None,
            },
            _ = ping.tick() => {
                if heard.elapsed() > SOCKET_SILENCE_MAX {
                    return None;
                }
                if let Err(reason) = live.check(state, login).await {
                    return Some((close_code::POLICY, reason));
                }
                send(socket, Message::Ping(Default::default())).await?;
            }
            () = Stop::Drain.reached(&mut stop) => {
                return Some((close_code::AWAY, "the server stops".to_owned()));
            }
        }
    }
}

/// Sends a message; `None` if the client is gone or takes nothing.
async fn send(socket: &mut WebSocket, message: Message) -> Option<()> {
    timeout(SOCKET_SEND_TIMEOUT, socket.send(message)).await.ok()?.ok()
}

async fn end(mut socket: WebSocket, close: Close) {
    let Some((code, reason)) = close else { return };
    let handshake = async {
        let frame = CloseFrame { code, reason: reason.into() };
        if socket.send(Message::Close(Some(frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    // A client that does not answer is closed anyway.
    let _ = timeout(SOCKET_CLOSE_TIMEOUT, handshake).await;
}
