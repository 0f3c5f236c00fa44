//! Who goes when room is scarce: the largest holder of unfinished packets, and connections that say nothing.

use std::sync::atomic::Ordering;

use wire::mqtt::ReasonCode;

use super::super::acks::ConnectionKey;
use super::super::limits;
use super::super::session::{Close, Session};
use super::{Worker, find};

impl Worker {
    /// All connections together may leave only so much unfinished. The largest holder is closed, not the one that came
    /// last: a few that send half a packet each do not make the next device lose its own. An error says that it is `key`.
    pub(super) fn close_largest_partial(&mut self, key: ConnectionKey) -> Result<(), Close> {
        let limit = self.door.options.partial_bytes_max();
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
            let close = Close::refused(ReasonCode::QUOTA_EXCEEDED, "partial_bytes", cause);
            if largest == key {
                return Err(close);
            }
            self.close(largest, close);
        }
        Ok(())
    }

    /// When the door is almost full, connections that have been open for a while and sent no CONNECT make room, the oldest
    /// first: a client that means it sends one at once.
    pub(super) fn close_silent(&mut self) {
        let now_s = self.door.now_s();
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
            self.close(key, Close::refused(ReasonCode::SERVER_BUSY, "silent", cause));
        }
    }

    fn is_almost_full(&self) -> bool {
        let limit = self.door.options.connections_max;
        let spare = (limit / limits::SPARE_CONNECTIONS_RATIO).max(1);
        self.door.connections.load(Ordering::Acquire) + spare > limit
    }
}
