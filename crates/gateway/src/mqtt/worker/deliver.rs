//! Publishes the messages of a pass, and passes waiting messages to the connections of their receivers.

use std::net::SocketAddr;

use hub::broker::{BrokerError, Delivered, DropCause, Dropped, Published};
use hub::clock::system_now;
use hub::rpc::Delivery;
use hub::{Blame, DeadLetter, Door, Durability};

use super::super::acks::ConnectionKey;
use super::super::session::{Session, SessionEnd};
use super::event_loop::Worker;
use super::slots::find;
use crate::refusals;
use wire::mqtt::ReasonCode;

impl Worker {
    /// Publishes the messages of this pass. Keeps those for which the key-value engine or the store has no room, and their acks.
    /// Returns whether none is left.
    pub(super) fn publish_messages(&mut self) -> bool {
        if !self.publications.is_empty() {
            let mut published = Published::default();
            let result = self.state.hub.broker().publish(&mut self.publications, &mut published);
            self.kv_sequence = published.sequence.unwrap_or(self.kv_sequence);
            self.dropped.extend(published.dropped);
            match result {
                Ok(()) => {}
                Err(error) if error.is_busy() => self.stalled = true,
                Err(error) => self.refuse_publications(&error),
            }
        }
        self.store_dropped();
        self.publications.is_empty() && self.dropped.is_empty() && self.dead_letters.is_empty()
    }

    /// Stores messages that receivers did not get as dead letters. The acks of their publishers come later in the store, so they
    /// wait for them.
    fn store_dropped(&mut self) {
        loop {
            while !self.dead_letters.is_full()
                && let Some(dropped) = self.dropped.pop_front()
            {
                self.add_dead_letter(dropped);
            }
            if self.dead_letters.is_empty() {
                return;
            }
            match self.state.hub.ingest(&self.dead_letters, Durability::Fsync) {
                Ok(ticket) => {
                    self.ended.dead_letters = Some(ticket);
                    self.dead_letters.clear();
                }
                Err(error) if error.blame() == Blame::Busy => {
                    self.stalled = true;
                    return;
                }
                Err(error) => {
                    let messages = self.dead_letters.len();
                    tracing::error!(%error, messages, "messages that did not fit into queues are lost");
                    self.dead_letters.clear();
                }
            }
        }
    }

    /// The engine does not accept messages. The worker closes the connections without acks, so the publishers keep their messages.
    fn refuse_publications(&mut self, error: &BrokerError) {
        tracing::error!(%error, messages = self.publications.len(), "messages refused: they cannot be kept");
        self.publications.clear();
        for class in Durability::ALL {
            self.refuse_acks(class, &error.to_string());
        }
    }

    /// Adds a message that a receiver did not get to the dead letters of the receiver.
    fn add_dead_letter(&mut self, dropped: Dropped) {
        let Dropped { cause, device, message, reason } = dropped;
        let hub = &self.state.hub;
        let Some(device) = device.and_then(|device| hub.registry().device_by_id(device)) else {
            hub.metrics().refused(Door::Mqtt, label(cause));
            match cause {
                DropCause::RetainedFull => tracing::warn!(reason, "a message was not retained"),
                _ => tracing::debug!(reason, "a message is lost with the device of its receiver"),
            }
            return;
        };
        let (topic, payload) = (&*message.topic, &*message.payload);
        let dead_letter = DeadLetter { door: Door::Mqtt.name(), topic, reason: &reason, payload };
        if let Err(error) = hub.add_dead_letter(&device, dead_letter, &mut self.dead_letters) {
            tracing::error!(%error, device = %device.name, "a message that did not fit into a queue is lost");
        }
        refusals::message(hub, Door::Mqtt, None::<SocketAddr>, &device, label(cause), &reason);
    }

    /// Passes waiting messages to connections, as far as the clients take them.
    pub(super) fn deliver_messages(&mut self) {
        self.deliveries.extend(self.parts.handle.take_deliveries());
        let durable = self.state.hub.broker().progress().durable;
        if durable != self.kv_durable {
            self.kv_durable = durable;
            self.deliveries.append(&mut self.undurable);
        }
        let now_ms = system_now().micros() / 1_000;
        let mut again = Vec::new();
        for key in std::mem::take(&mut self.deliveries) {
            match self.deliver(key, now_ms) {
                Ok(Delivered::All) => {}
                Ok(Delivered::Undurable) => self.undurable.push(key),
                Ok(Delivered::Again) => again.push(key),
                Err(end) => self.close(key, end),
            }
        }
        self.deliveries = again;
        self.await_undurable();
        for (device, call) in self.acknowledged.take_calls() {
            if let Some(device) = self.state.hub.registry().device_by_id(device) {
                self.state.hub.call_delivery(&device, call, Delivery::Delivered);
            }
        }
        self.state.hub.broker().commit(&mut self.acknowledged);
    }

    /// Lets progress of the key-value engine wake the worker for connections whose next message is not durable.
    fn await_undurable(&mut self) {
        if self.undurable.is_empty() {
            return;
        }
        self.parts.handle.await_progress(true);
        // Progress from before this call wakes nobody.
        if self.state.hub.broker().progress().durable != self.kv_durable {
            self.deliveries.append(&mut self.undurable);
        }
    }

    fn deliver(&mut self, key: ConnectionKey, now_ms: i64) -> Result<Delivered, SessionEnd> {
        let Some(connection) = find(&mut self.connections, key) else { return Ok(Delivered::All) };
        if std::mem::take(&mut connection.awaits) {
            // The next pass handles the message that waits.
            self.paused.push(key);
        }
        let Session::Connected(connected) = &connection.session else { return Ok(Delivered::All) };
        // The device has lost what was taken. It reads its attributes again after the next connect, and calls end with their timeout.
        let more = connected
            .take_from_outbox(&self.state.hub)
            .map_err(|error| SessionEnd::refused(ReasonCode::SERVER_BUSY, "broker", error.to_string()))?;
        let Some(attached) = connected.attached.get() else { return Ok(Delivered::All) };
        let (peer, out, aliases) = (connected.peer, &mut connection.out, &mut connection.aliases);
        let delivered =
            self.state.hub.broker().deliver(attached, now_ms, &mut self.acknowledged, &mut |packet| {
                peer.write_outgoing(packet, aliases, now_ms, out)
            });
        connection.starved = connection.out.is_full();
        if !connection.out.is_empty() && !connection.dirty {
            connection.dirty = true;
            self.dirty.push(key);
        }
        match delivered {
            // The engine announces that it has room like progress.
            Err(error) if error.is_busy() => Ok(Delivered::Undurable),
            Err(error) => {
                let reason = ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR;
                Err(SessionEnd::refused(reason, "broker", error.to_string()))
            }
            Ok(Delivered::All) if more => Ok(Delivered::Again),
            Ok(delivered) => Ok(delivered),
        }
    }

    /// Sends the answers whose change is durable.
    pub(super) fn send_deferred(&mut self) {
        let progress = self.state.hub.broker().progress();
        while let Some(answer) = self.deferred.pop_front_if(|answer| answer.sequence <= progress.durable) {
            let Some(connection) = find(&mut self.connections, answer.connection) else { continue };
            connection.out.tail().extend_from_slice(&answer.bytes);
            if !connection.dirty {
                connection.dirty = true;
                self.dirty.push(answer.connection);
            }
        }
        if progress.sealed {
            let cause = "the key-value engine was sealed by a failed write before this was durable";
            for answer in std::mem::take(&mut self.deferred) {
                self.close_for_store(answer.connection, cause);
            }
        }
    }
}

/// The label of the metrics.
fn label(cause: DropCause) -> &'static str {
    match cause {
        DropCause::QueueFull => "queue_full",
        DropCause::RetainedFull => "retained",
        DropCause::SessionEnded => "session_ended",
    }
}
