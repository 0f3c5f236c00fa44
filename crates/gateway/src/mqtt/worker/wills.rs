//! Publishes wills. The clients are gone and cannot send them again, so a will waits for the next pass, and then until the
//! store has room. Its first row without a time gets the time at which the session ended.

use std::net::SocketAddr;
use std::sync::Arc;

use hub::clock::system_now;
use hub::wake::Wake;
use model::panics::contain_panic;

use super::super::acks::ConnectionKey;
use super::super::clients::ConnectionRef;
use super::super::session::{Context, Session};
use super::event_loop::Worker;
use super::will_queue::Will;

impl Worker {
    /// Ends the session of a closed connection. The next pass publishes its will.
    pub(super) fn end_session(&mut self, session: Session, connection: ConnectionKey, peer: SocketAddr) {
        let now_ms = system_now().micros() / 1_000;
        let with_will = session.end(&self.state.clients, self.state.hub.broker(), self.state.now_s(), now_ms);
        // A will announces that the device is gone, which is not the case when the server stops [MQTT5 3.1.2.5].
        let Some(session) = with_will.filter(|_| !self.state.is_stopping()) else { return };
        let received = self.state.hub.receipt_time();
        let bytes_max = self.state.options.late_wills_bytes_max();
        let delay_s = session.will_delay_s();
        let will = Will { session, connection, peer, received };
        let added = match delay_s {
            0 => self.wills.add(will, bytes_max),
            _ => {
                let outcome = will.session.await_will(&self.state.clients);
                self.wills.add_delayed(will, (self.state.now_s().saturating_add(delay_s), outcome), bytes_max)
            }
        };
        if let Err(will) = added {
            will.session.discard_will(&self.state.hub, "too many wills wait");
        }
    }

    /// Publishes wills as long as the store has room.
    pub(super) fn publish_wills(&mut self) {
        let no_wake = || -> Arc<dyn Wake> { unreachable!("BUG: a will begins no session") };
        while !self.waits_for_store() && !self.is_batch_full() {
            let Some(mut will) = self.wills.take_first() else { return };
            let mut context = Context {
                hub: &self.state.hub,
                options: &self.state.options,
                clients: &self.state.clients,
                provisioner: &self.state.provisioner,
                gate: &self.state.gate,
                exceeded: None,
                connection: ConnectionRef { worker: self.index, key: will.connection },
                peer: will.peer,
                certificates: Vec::new(),
                now: will.received,
                received: Some(will.received),
                now_s: self.state.now_s(),
                packet_end: None,
                takes_messages: true,
                out: &mut Vec::new(),
                batches: &mut self.batches,
                publications: &mut self.publications,
                acknowledged: &mut self.acknowledged,
                kv_sequence: &mut self.kv_sequence,
                deferred: &mut self.deferred,
                deliver: &mut false,
                wake: &no_wake,
                taken_over: &mut None,
            };
            // As in `handle_bytes`: a bug that a will triggers must not end the server.
            match contain_panic(|| will.session.publish_will(&mut context)) {
                Ok(true) => {}
                Ok(false) => {
                    self.wills.put_first(will);
                    self.store_busy = true;
                }
                Err(panic) => will.session.discard_will(&self.state.hub, &panic),
            }
        }
    }

    /// Takes the wills whose delay is over, or whose session has ended.
    pub(super) fn take_due_wills(&mut self) {
        let clients = &self.state.clients;
        self.wills.take_due(self.state.now_s(), |will, outcome| will.session.forget_will(clients, outcome));
    }

    /// Discards the waiting wills; the door stops.
    pub(super) fn discard_wills(&mut self) {
        while let Some(will) = self.wills.take_first() {
            will.session.discard_will(&self.state.hub, "the store is busy while the server stops");
        }
    }
}
