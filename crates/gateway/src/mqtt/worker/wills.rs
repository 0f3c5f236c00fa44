//! The ends of sessions, and wills that wait for the store: the sender of a will cannot send it again.

use std::collections::VecDeque;

use model::Timestamp;

use super::super::acks::ConnectionKey;
use super::super::clients::Place;
use super::super::limits;
use super::super::session::{Connected, Context, Session};
use super::Worker;

/// Wills of sessions that ended while the store had no room, oldest first.
#[derive(Debug, Default)]
pub(super) struct LateWills {
    wills: VecDeque<LateWill>,
    bytes: usize,
}

#[derive(Debug)]
struct LateWill {
    session: Box<Connected>,
    /// The connection that is gone.
    connection: ConnectionKey,
    ended_at: Timestamp,
}

impl LateWill {
    fn bytes(&self) -> usize {
        limits::LATE_WILL_BYTES + self.session.will_bytes()
    }
}

impl LateWills {
    pub(super) fn is_empty(&self) -> bool {
        self.wills.is_empty()
    }

    fn take_first(&mut self) -> Option<LateWill> {
        let first = self.wills.pop_front()?;
        self.bytes -= first.bytes();
        Some(first)
    }

    fn put_first(&mut self, will: LateWill) {
        self.bytes += will.bytes();
        self.wills.push_front(will);
    }

    /// Gives a will back for which there is no room.
    fn add(&mut self, will: LateWill) -> Result<(), LateWill> {
        if self.bytes + will.bytes() > limits::LATE_WILLS_BYTES_MAX {
            return Err(will);
        }
        self.bytes += will.bytes();
        self.wills.push_back(will);
        Ok(())
    }
}

impl Worker {
    /// Ends the session of a connection that is gone, and publishes its will, now or when the store has room.
    pub(super) fn end_session(&mut self, session: Session, connection: ConnectionKey) {
        // A will says that the device is gone; when the server goes, it is not [MQTT5 3.1.2.5].
        let publish_will = !self.door.is_stopping();
        let ended_at = hub::clock::system_now();
        let waits = self.without_peer(connection, ended_at, |context| session.end(publish_will, context));
        let Some(session) = waits else { return };
        if let Err(will) = self.late_wills.add(LateWill { session, connection, ended_at }) {
            will.session.lose_will(&self.door.hub, "the store is busy, and too many wills wait for it");
        }
    }

    /// Publishes wills that waited for the store, as far as it has room.
    pub(super) fn publish_late_wills(&mut self) {
        while !self.is_blocked() && !self.turn_is_full() {
            let Some(mut will) = self.late_wills.take_first() else { return };
            let (connection, ended_at) = (will.connection, will.ended_at);
            if !self.without_peer(connection, ended_at, |context| will.session.publish_will(context)) {
                self.late_wills.put_first(will);
                self.not_now = true;
            }
        }
    }

    /// What is done for a connection that is gone.
    fn without_peer<R>(
        &mut self,
        connection: ConnectionKey,
        now: Timestamp,
        act: impl FnOnce(&mut Context<'_>) -> R,
    ) -> R {
        act(&mut Context {
            hub: &self.door.hub,
            options: &self.door.options,
            clients: &self.door.clients,
            place: Place { worker: self.index, connection },
            now,
            now_s: self.door.now_s(),
            takes_messages: true,
            out: &mut Vec::new(),
            turn: &mut self.turn,
            taken_over: &mut None,
        })
    }

    /// Gives up what waits; the door ends.
    pub(super) fn lose_late_wills(&mut self) {
        while let Some(will) = self.late_wills.take_first() {
            will.session.lose_will(&self.door.hub, "the store is busy while the server stops");
        }
    }
}
