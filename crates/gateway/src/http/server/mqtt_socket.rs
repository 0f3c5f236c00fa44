//! MQTT over WebSocket: answers the request and hands the socket to the MQTT door.

use std::io;
use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, StatusCode, Version};
use axum::response::Response;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::admission::unavailable;
use super::door_stream::{TimedStream, take_socket};
use crate::error::ApiError;
use crate::http::tools::connection::Connection;
use crate::http::tools::state::HttpState;
use crate::mqtt::WebSocket;

/// The subprotocol of MQTT 3.1.1 and 5 [MQTT-6.0.0-3].
const SUBPROTOCOL: &str = "mqtt";

/// `GET /mqtt`
pub(crate) async fn open(
    State(state): State<Arc<HttpState>>,
    Extension(connection): Extension<Connection>,
    mut request: Request,
) -> Result<Response, ApiError> {
    let Some(mqtt) = state.options.mqtt.clone() else {
        return Err(ApiError::not_found("the MQTT door is closed"));
    };
    let on_upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let accept = accept_key(request.version(), request.headers())?;
    let on_upgrade = on_upgrade.ok_or_else(|| not_websocket("the connection cannot change its protocol"))?;
    let permit = mqtt.admit(connection.peer()).map_err(|exceeded| unavailable(&exceeded))?;
    tokio::spawn(async move {
        let peer = connection.peer();
        let handed_over = match on_upgrade.await {
            Ok(upgraded) => {
                socket_of(upgraded, &connection).and_then(|opened| mqtt.hand_over(opened, permit))
            }
            Err(error) => Err(io::Error::other(error)),
        };
        if let Err(error) = handed_over {
            tracing::debug!(%peer, %error, "http: a WebSocket did not get to the MQTT door");
        }
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL)
        .header(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response.body(Body::empty()).expect("BUG: the headers are plain text"))
}

/// Checks a request for a WebSocket (RFC 6455, 4.2.1). Returns the value of the header that accepts it.
fn accept_key(version: Version, headers: &HeaderMap) -> Result<String, ApiError> {
    if version != Version::HTTP_11 {
        return Err(not_websocket("the request is not one of HTTP/1.1"));
    }
    if !has_token(headers, &UPGRADE, "websocket") || !has_token(headers, &CONNECTION, "upgrade") {
        return Err(not_websocket("the request does not ask for an upgrade to WebSocket"));
    }
    if !has_token(headers, &SEC_WEBSOCKET_VERSION, "13") {
        return Err(not_websocket("the request does not name version 13 of WebSocket"));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).ok_or_else(|| not_websocket("the request has no key"))?;
    if !has_token(headers, &SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        return Err(not_websocket("the request does not name the subprotocol \"mqtt\" [MQTT-6.0.0-3]"));
    }
    Ok(derive_accept_key(key.as_bytes()))
}

fn not_websocket(why: &str) -> ApiError {
    ApiError::bad_request(format!("this path speaks MQTT over WebSocket; connect with an MQTT client: {why}"))
}

/// Whether one of the comma-separated words of a header is this one, in any case.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(token))
}

/// The socket under an upgraded connection.
fn socket_of(upgraded: Upgraded, connection: &Connection) -> io::Result<WebSocket> {
    let parts = upgraded.downcast::<TokioIo<TimedStream>>();
    let parts = parts.map_err(|_| io::Error::other("BUG: the door serves another kind of stream"))?;
    let (socket, tls) = take_socket(parts.io.into_inner())?;
    Ok(WebSocket { socket, tls, unread: parts.read_buf, peer: connection.peer() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(change: impl FnOnce(&mut HeaderMap)) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (UPGRADE, "WebSocket"),
            (CONNECTION, "keep-alive, Upgrade"),
            (SEC_WEBSOCKET_VERSION, "13"),
            (SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ=="),
            (SEC_WEBSOCKET_PROTOCOL, "mqttv3.1, mqtt"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        change(&mut headers);
        accept_key(Version::HTTP_11, &headers).map_err(|error| error.message)
    }

    #[test]
    fn the_key_of_the_specification_is_accepted() {
        // RFC 6455, 1.3.
        assert_eq!(request(|_| {}).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_is_missing_is_named() {
        for (name, missing) in [
            (UPGRADE, "upgrade to WebSocket"),
            (CONNECTION, "upgrade to WebSocket"),
            (SEC_WEBSOCKET_VERSION, "version 13"),
            (SEC_WEBSOCKET_KEY, "no key"),
            (SEC_WEBSOCKET_PROTOCOL, "subprotocol"),
        ] {
            let refused = request(|headers| drop(headers.remove(&name))).unwrap_err();
            assert!(refused.contains(missing), "{name}: {refused}");
        }
        let other = request(|headers| drop(headers.insert(SEC_WEBSOCKET_PROTOCOL, "wamp".parse().unwrap())));
        assert!(other.unwrap_err().contains("subprotocol"));
    }
}
