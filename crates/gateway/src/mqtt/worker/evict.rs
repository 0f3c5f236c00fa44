//! Evicts connections when memory or connections are scarce: the one with most unfinished input, and those without CONNECT.

use wire::mqtt::ReasonCode;

use super::super::acks::ConnectionKey;
use super::super::limits;
use super::super::session::{Session, SessionEnd};
use super::event_loop::Worker;
use super::slots::find;

impl Worker {
    /// Bounds the unfinished input of all connections. It closes the connection that holds most, not the newest one, so a few
    /// peers with half a packet each do not cost the next device its connection. If that is `key`, it returns the end.
    pub(super) fn close_largest_partial(&mut self, key: ConnectionKey) -> Result<(), SessionEnd> {
        let limit = self.state.options.partial_bytes_max();
        while self.partial_bytes > limit {
            let largest = self.connections.iter().max_by_key(|(_, connection)| connection.partial_bytes());
            let Some((slot, connection)) = largest.filter(|(_, connection)| connection.partial_bytes() > 0)
            else {
                return Ok(());
            };
            let largest = ConnectionKey { slot: slot as u32, generation: connection.generation };
            let (held, all) = (connection.partial_bytes(), self.partial_bytes);
            let cause = format!(
                "unfinished packets of all clients take {all} bytes, the limit is {limit}; this one has {held}, the most"
            );
            let end = SessionEnd::refused(ReasonCode::QUOTA_EXCEEDED, "partial_bytes", cause);
            if largest == key {
                return Err(end);
            }
            self.close(largest, end);
        }
        Ok(())
    }

    /// If the door is almost full, closes connections that have been open for a while without CONNECT, the oldest first. A
    /// real client sends CONNECT at once.
    pub(super) fn close_silent(&mut self) {
        let now_s = self.state.now_s();
        while let Some(key) = self.silent.front().copied() {
            let silent = find(&mut self.connections, key)
                .filter(|connection| matches!(connection.session, Session::New));
            let Some(connection) = silent else {
                self.silent.pop_front();
                continue;
            };
            let is_new = now_s.saturating_sub(connection.opened_at_s) < limits::SILENT_GRACE_S;
            if is_new || !self.is_almost_full() {
                return;
            }
            let cause =
                format!("no CONNECT within {} s while connections are scarce", limits::SILENT_GRACE_S);
            self.close(key, SessionEnd::refused(ReasonCode::SERVER_BUSY, "silent", cause));
        }
    }

    fn is_almost_full(&self) -> bool {
        let limit = self.state.gate.connections_max();
        let spare = (limit / limits::SPARE_CONNECTIONS_RATIO).max(1);
        self.state.gate.open() + spare > limit
    }
}
