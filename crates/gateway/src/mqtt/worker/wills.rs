//! Wills. Their senders are gone and cannot send them again, so a will waits: for the next turn, and then until the store
//! has room. Its first row without a time has the one at which its session ended.

use std::collections::VecDeque;
use std::net::SocketAddr;

use model::Timestamp;
use model::panics::contain_panic;

use super::super::acks::ConnectionKey;
use super::super::clients::Place;
use super::super::limits;
use super::super::session::{Connected, Context, Session};
use super::Worker;

/// Wills of sessions that have ended, oldest first.
#[derive(Debug, Default)]
pub(super) struct Wills {
    wills: VecDeque<Will>,
    bytes: usize,
}

#[derive(Debug)]
struct Will {
    session: Box<Connected>,
    /// The connection that is gone.
    connection: ConnectionKey,
    peer: SocketAddr,
    received: Timestamp,
}

impl Will {
    fn bytes(&self) -> usize {
        limits::LATE_WILL_BYTES + self.session.will_bytes()
    }
}

impl Wills {
    pub(super) fn is_empty(&self) -> bool {
        self.wills.is_empty()
    }

    fn take_first(&mut self) -> Option<Will> {
        let first = self.wills.pop_front()?;
        self.bytes -= first.bytes();
        Some(first)
    }

    fn put_first(&mut self, will: Will) {
        self.bytes += will.bytes();
        self.wills.push_front(will);
    }

    /// Gives a will back for which there is no room.
    fn add(&mut self, will: Will, bytes_max: usize) -> Result<(), Will> {
        if self.bytes + will.bytes() > bytes_max {
            return Err(will);
        }
        self.bytes += will.bytes();
        self.wills.push_back(will);
        Ok(())
    }
}

impl Worker {
    /// Ends the session of a connection that is gone; the next turn publishes its will.
    pub(super) fn end_session(&mut self, session: Session, connection: ConnectionKey, peer: SocketAddr) {
        let with_will = session.end(&self.door.clients, self.door.now_s());
        // A will says that the device is gone; when the server goes, it is not [MQTT5 3.1.2.5].
        let Some(session) = with_will.filter(|_| !self.door.is_stopping()) else { return };
        let received = self.door.hub.receipt_time();
        let bytes_max = self.door.options.late_wills_bytes_max();
        if let Err(will) = self.wills.add(Will { session, connection, peer, received }, bytes_max) {
            will.session.lose_will(&self.door.hub, "too many wills wait");
        }
    }

    /// Publishes wills, as far as there is room.
    pub(super) fn publish_wills(&mut self) {
        while !self.is_blocked() && !self.turn_is_full() {
            let Some(mut will) = self.wills.take_first() else { return };
            let mut context = Context {
                hub: &self.door.hub,
                options: &self.door.options,
                clients: &self.door.clients,
                place: Place { worker: self.index, connection: will.connection },
                peer: will.peer,
                now: will.received,
                received: Some(will.received),
                now_s: self.door.now_s(),
                takes_messages: true,
                out: &mut Vec::new(),
                turn: &mut self.turn,
                taken_over: &mut None,
            };
            // As in `take_bytes`: a bug that a will brings out is not to end the server.
            match contain_panic(|| will.session.publish_will(&mut context)) {
                Ok(true) => {}
                Ok(false) => {
                    self.wills.put_first(will);
                    self.not_now = true;
                }
                Err(panic) => will.session.lose_will(&self.door.hub, &panic),
            }
        }
    }

    /// Gives up what waits; the door ends.
    pub(super) fn lose_wills(&mut self) {
        while let Some(will) = self.wills.take_first() {
            will.session.lose_will(&self.door.hub, "the store is busy while the server stops");
        }
    }
}
