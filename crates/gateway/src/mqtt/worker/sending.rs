//! Sends acks when their batch is durable, and the output of connections.

use hub::IngestError;

use super::super::acks::{AckGroup, AckKind, PendingAck};
use super::super::session::{Session, SessionEnd};
use super::super::traffic::Traffic;
use super::event_loop::Worker;
use super::slots::{enqueue, find};

impl Worker {
    /// Sends the acks that the store's progress allows. If the store is sealed, closes the connections of all others.
    pub(super) fn release_acks(&mut self) {
        let waits = !self.queues.is_empty()
            || !self.deferred.is_empty()
            || !self.undurable.is_empty()
            || self.ended.await_store();
        self.parts.handle.await_progress(waits || self.stalled);
        let (progress, kv) = (self.state.hub.progress(), self.state.hub.broker().progress());
        while let Some(group) = self.queues.pop_reached(progress, kv) {
            self.send_acks(group);
        }
        if progress.sealed || kv.sealed {
            let cause = "the store was sealed by a failed write before this was durable";
            while let Some(group) = self.queues.pop_any() {
                group.acks.iter().for_each(|ack| self.close_for_store(ack.connection, cause));
            }
        }
    }

    fn send_acks(&mut self, mut group: AckGroup) {
        let latency_s = group.received.elapsed().as_secs_f64();
        let metrics = self.state.hub.metrics().door(hub::Door::Mqtt);
        let messages = group.acks.iter().filter(|ack| ack.kind != AckKind::Part).count();
        metrics.ack_latency.observe_many(latency_s, messages as u64);
        let in_flight_max = u32::from(self.state.options.receive_maximum);
        let any_lost = self.state.hub.late_failure(group.ticket).is_some();
        let mut lost_part = None;
        for ack in group.acks.drain(..) {
            let key = ack.connection;
            let lost = || self.state.hub.late_failure(ack.ticket).filter(|_| any_lost);
            if ack.kind == AckKind::Part {
                lost_part = lost_part.or_else(lost);
                continue;
            }
            if let Some(error) = lost_part.take().or_else(lost) {
                self.refuse_lost(&ack, &error);
                continue;
            }
            let Some(connection) = find(&mut self.connections, key) else { continue };
            let Session::Connected(connected) = &mut connection.session else { continue };
            if ack.kind != AckKind::None {
                connected.in_flight -= 1;
            }
            connected.peer.write_ack(&ack, connection.out.tail());
            if !connection.dirty && !connection.out.is_empty() {
                connection.dirty = true;
                self.dirty.push(key);
            }
            if connection.readable && connection.may_read(in_flight_max) {
                enqueue(&mut self.ready, connection, key);
            }
        }
        self.queues.recycle(group.acks);
    }

    /// The store took a message and could not keep it. The worker closes the connection without an ack, so the peer still has the
    /// message; a message of QoS 0 has no ack.
    fn refuse_lost(&mut self, ack: &PendingAck, error: &IngestError) {
        ack.not_stored();
        match ack.kind {
            AckKind::None | AckKind::Part => {
                self.state.hub.metrics().refused(hub::Door::Mqtt, "lost_by_store");
                tracing::warn!(%error, "a message of QoS 0 or a will was lost");
            }
            AckKind::PubAck | AckKind::PubRec => self.close_for_store(ack.connection, &error.to_string()),
        }
    }

    /// Sends the output of all connections that have some.
    pub(super) fn flush_dirty(&mut self) {
        let in_flight_max = u32::from(self.state.options.receive_maximum);
        let now_s = self.state.now_s();
        let mut sent = Traffic::default();
        for key in std::mem::take(&mut self.dirty) {
            let Some(connection) = find(&mut self.connections, key) else { continue };
            connection.dirty = false;
            let flushed = connection.flush(now_s);
            sent.add(connection.take_sent());
            match flushed {
                Ok(is_empty) => {
                    if is_empty && std::mem::take(&mut connection.starved) {
                        self.deliveries.push(key);
                    }
                    if connection.readable && connection.may_read(in_flight_max) {
                        enqueue(&mut self.ready, connection, key);
                    }
                }
                Err(error) => self.close(key, SessionEnd::normal(format!("the connection broke: {error}"))),
            }
        }
        let metrics = &self.state.hub.metrics().broker;
        sent.count_sent(metrics);
        std::mem::take(&mut self.received).count_received(metrics);
    }
}
