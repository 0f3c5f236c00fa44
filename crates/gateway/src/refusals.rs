//! Refusals of messages and logins, for all doors. A door counts the refusal, keeps its reason for the device's page and
//! `tacho device show`, and writes a log line at a bounded rate. The line never contains a token or a password.

use std::net::SocketAddr;

use hub::clock::system_now;
use hub::registry::Device;
use hub::{Door, Hub};

use crate::door::LimitExceeded;
use crate::error::ApiError;

/// Counts and logs a refused message of a device. `label` is for the metrics. `peer` is `None` if the connection is gone.
pub(crate) fn message(
    hub: &Hub,
    door: Door,
    peer: Option<SocketAddr>,
    device: &Device,
    label: &'static str,
    reason: &str,
) {
    hub.metrics().refused(door, label);
    note(hub, door, peer, device, reason);
}

/// Like [`message`], for a message that the metrics count already.
pub(crate) fn note(hub: &Hub, door: Door, peer: Option<SocketAddr>, device: &Device, reason: &str) {
    let Some(line) = hub.refusals().note(device.id, door, reason, system_now()) else { return };
    let (door, peer, device) = (door.name(), text(peer), &device.name);
    let (messages, lines_left_out) = (line.refusals, line.left_out);
    tracing::warn!(door, %peer, %device, messages, lines_left_out, reason, "refused what a device sent");
}

/// Like [`note`], for a request over HTTP that ended with an error. After a busy answer the device sends the request again, so that
/// is not a refusal.
pub(crate) fn request(hub: &Hub, peer: Option<SocketAddr>, device: &Device, error: &ApiError) {
    if error.retry_after_s.is_none() {
        note(hub, Door::Http, peer, device, &error.message);
    }
}

/// Logs that the server closed a connection for an error of the peer. With `counts` it is a refusal of the device.
pub(crate) fn connection(
    hub: &Hub,
    door: Door,
    peer: SocketAddr,
    device: Option<&Device>,
    counts: bool,
    cause: &str,
) {
    let now = system_now();
    let line = match device.filter(|_| counts) {
        Some(device) => hub.refusals().note(device.id, door, cause, now),
        None => hub.refusals().note_connection(now),
    };
    let Some(line) = line else { return };
    let (door, device) = (door.name(), device.map(|device| &device.name));
    let (refusals, lines_left_out) = (line.refusals, line.left_out);
    tracing::warn!(door, %peer, device, refusals, lines_left_out, cause, "closed a connection");
}

/// Logs a connection or a request above a limit of its door.
pub(crate) fn door_limit(hub: &Hub, exceeded: &LimitExceeded, peer: Option<SocketAddr>) {
    let Some(line) = hub.refusals().note_connection(system_now()) else { return };
    let (door, peer, lines_left_out) = (exceeded.door.name(), text(peer), line.left_out);
    let limit = exceeded.limit.name();
    tracing::warn!(door, %peer, lines_left_out, limit, cause = %exceeded, "refused what exceeds a limit");
}

/// Logs refused credentials of a device.
pub(crate) fn credentials(hub: &Hub, door: Door, peer: Option<SocketAddr>, reason: &str) {
    let Some(line) = hub.refusals().note_login(system_now()) else { return };
    let (door, peer, lines_left_out) = (door.name(), text(peer), line.left_out);
    tracing::warn!(door, %peer, lines_left_out, reason, "refused a device's credentials");
}

/// Logs a refused login. The line omits a name that no user has: it may be a password that was typed into the wrong field.
pub(crate) fn login(hub: &Hub, door: Door, peer: Option<SocketAddr>, user: &str) {
    let Some(line) = hub.refusals().note_login(system_now()) else { return };
    let (door, peer, lines_left_out) = (door.name(), text(peer), line.left_out);
    let user = hub.registry().login_of(user);
    let reason = if user.is_some() { "the password is wrong" } else { "there is no such user" };
    let user = user.as_deref();
    tracing::warn!(door, %peer, user, lines_left_out, reason, "refused a login");
}

fn text(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "gone".to_owned(), |peer| peer.to_string())
}
