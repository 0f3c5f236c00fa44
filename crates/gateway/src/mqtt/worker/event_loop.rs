//! The event loop of a worker.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub::ByClass;
use hub::broker::{Acknowledged, Dropped, Publication};
use mio::{Events, Token};
use model::{Batch, MemoryLevel};
use slab::Slab;
use wire::mqtt::ReasonCode;

use super::super::acks::{AckQueues, ConnectionKey};
use super::super::connection::Connection;
use super::super::deferred::DeferredQueue;
use super::super::ingest_batch::IngestBatch;
use super::super::limits;
use super::super::session::SessionEnd;
use super::super::state::MqttState;
use super::super::traffic::Traffic;
use super::ended_sessions::EndedSessions;
use super::parts::WorkerParts;
use super::paused::PausedConnections;
use super::read_buffer::ReadBuffer;
use super::slots::enqueue;
use super::will_queue::WillQueue;

/// A worker: one thread with one event loop.
pub(in crate::mqtt) struct Worker {
    pub(super) state: Arc<MqttState>,
    pub(super) index: usize,
    pub(super) parts: WorkerParts,
    pub(super) connections: Slab<Connection>,
    pub(super) next_generation: u32,
    pub(super) read_buffer: ReadBuffer,
    /// Connections that may have unread bytes and that the worker may read from.
    pub(super) ready: VecDeque<ConnectionKey>,
    /// Connections with unsent output.
    pub(super) dirty: Vec<ConnectionKey>,
    /// Connections whose next message waits for the store.
    pub(super) paused: Vec<ConnectionKey>,
    /// Connections whose next message is above a limit of their tenant.
    pub(super) held: PausedConnections,
    /// Connections in the order in which they were opened, candidates for eviction. Those with a session are removed lazily.
    pub(super) silent: VecDeque<ConnectionKey>,
    pub(super) wills: WillQueue,
    /// Bytes of unhandled input, over all connections.
    pub(super) partial_bytes: usize,
    /// Packets that were received in this pass.
    pub(super) received: Traffic,
    /// The batches of this pass, by durability class.
    pub(super) batches: ByClass<IngestBatch>,
    pub(super) queues: AckQueues,
    /// Messages of this pass for subscribers.
    pub(super) publications: Vec<Publication>,
    /// Messages that receivers did not get, and that are not in `dead_letters` yet.
    pub(super) dropped: VecDeque<Dropped>,
    /// Dead letters of such messages.
    pub(super) dead_letters: Batch,
    pub(super) ended: EndedSessions,
    /// Deletions of messages that clients have acknowledged.
    pub(super) acknowledged: Acknowledged,
    /// Answers that wait for the key-value engine.
    pub(super) deferred: DeferredQueue,
    /// Connections for which messages may wait.
    pub(super) deliveries: Vec<ConnectionKey>,
    /// Connections whose next message is not durable yet.
    pub(super) undurable: Vec<ConnectionKey>,
    /// The last sequence of the key-value engine that an ack of this worker waits for.
    pub(super) kv_sequence: u64,
    /// What the key-value engine had made durable in the last pass.
    pub(super) kv_durable: u64,
    /// The store had no room for a batch. The worker accepts no message until it has.
    pub(super) stalled: bool,
    /// In this pass the store had no room for a message of the batch, such as for its series.
    pub(super) store_busy: bool,
    /// Messages come faster than the limit of the door. The worker accepts none until this time.
    pub(super) throttled_until: Option<Instant>,
    pub(super) ticked_at_s: u32,
    /// When the first worker publishes the counters under `$SYS` again.
    pub(super) system_due_s: u32,
    pub(super) registry_generation: u64,
    /// The topics of profiles with which the first worker has compared the subscriptions of absent sessions.
    pub(super) topics_generation: Option<u64>,
    pub(super) pass_began: Instant,
    pub(super) last_pass_began: Instant,
    /// Accepted messages of the last pass.
    pub(super) pass_messages: u64,
}

impl Worker {
    pub(in crate::mqtt) fn new(state: Arc<MqttState>, index: usize, parts: WorkerParts) -> Self {
        Self {
            registry_generation: state.hub.registry().generation(),
            state,
            index,
            parts,
            connections: Slab::new(),
            next_generation: 0,
            read_buffer: ReadBuffer::default(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            paused: Vec::new(),
            held: PausedConnections::default(),
            silent: VecDeque::new(),
            wills: WillQueue::default(),
            partial_bytes: 0,
            received: Traffic::default(),
            batches: Default::default(),
            queues: AckQueues::default(),
            publications: Vec::new(),
            dropped: VecDeque::new(),
            dead_letters: Batch::new(),
            ended: EndedSessions::default(),
            acknowledged: Acknowledged::default(),
            deferred: DeferredQueue::new(),
            deliveries: Vec::new(),
            undurable: Vec::new(),
            kv_sequence: 0,
            kv_durable: 0,
            stalled: false,
            store_busy: false,
            throttled_until: None,
            ticked_at_s: 0,
            system_due_s: 0,
            topics_generation: None,
            pass_began: Instant::now(),
            last_pass_began: Instant::now(),
            pass_messages: 0,
        }
    }

    pub(in crate::mqtt) fn run(mut self) {
        let mut events = Events::with_capacity(limits::EVENTS_PER_POLL);
        while !self.state.is_stopping() {
            self.parts.handle.sleeps();
            let timeout = if self.pace() { Duration::ZERO } else { self.poll_timeout() };
            self.wait(&mut events, timeout);
            self.parts.handle.is_awake();
            self.last_pass_began = std::mem::replace(&mut self.pass_began, Instant::now());
            self.throttled_until.take_if(|until| *until <= self.pass_began);
            self.ended.paused_until.take_if(|until| *until <= self.pass_began);
            self.take_commands();
            self.release_held();
            self.resume_paused();
            self.publish_wills();
            self.read_ready();
            self.follow_ended_sessions();
            self.append_batches();
            self.release_acks();
            self.send_deferred();
            self.deliver_messages();
            self.flush_dirty();
            self.tick();
        }
        self.drain(&mut events);
    }

    /// Lets messages gather if the last pass had few messages and began soon after the one before. A wake-up costs as much as
    /// several messages, so this lowers the cost of a message at medium rates. It ends early when acks can leave. Returns
    /// whether it parked.
    fn pace(&mut self) -> bool {
        let messages = std::mem::take(&mut self.pass_messages);
        if messages == 0 || messages >= limits::PASS_MESSAGES_ENOUGH {
            return false;
        }
        let pace = Duration::from_micros(limits::PASS_PACE_US);
        let rest = pace.saturating_sub(self.pass_began.elapsed());
        let since_last = self.pass_began - self.last_pass_began;
        if since_last >= 2 * pace || rest.is_zero() {
            return false;
        }
        let guard = self.parts.handle.prepare_park();
        // Progress from before `prepare_park` does not unpark the thread.
        let waits = self.parts.handle.has_deliveries() || !self.deliveries.is_empty();
        if !waits && !self.queues.is_reached(self.state.hub.progress(), self.state.hub.broker().progress()) {
            guard.park(rest);
        }
        true
    }

    /// How long the poll may wait for events.
    fn poll_timeout(&self) -> Duration {
        let blocked = self.is_blocked();
        let nothing_waits = self.paused.is_empty() && self.wills.is_empty();
        let delivers = !self.deliveries.is_empty()
            || self.parts.handle.has_deliveries()
            || self.has_ended_sessions() && !blocked;
        if !self.ready.is_empty() || delivers || !(blocked || nothing_waits) {
            return Duration::ZERO;
        }
        let timeout = match self.waits_for_store() {
            true => Duration::from_millis(limits::STALLED_RETRY_MS),
            false => Duration::from_secs(1),
        };
        // The worker continues at the first of these times.
        let times = [self.throttled_until, self.held.next(), self.ended.paused_until];
        let now = Instant::now();
        times
            .into_iter()
            .flatten()
            .fold(timeout, |timeout, at| timeout.min(at.saturating_duration_since(now)))
    }

    /// Whether messages must wait, for the store or for the limit of messages in a second.
    pub(super) fn is_blocked(&self) -> bool {
        self.throttled_until.is_some() || self.waits_for_store()
    }

    /// Whether messages must wait for the store, or for the memory of the process.
    pub(super) fn waits_for_store(&self) -> bool {
        self.stalled
            || self.store_busy
            || self.queues.groups() >= limits::GROUPS_IN_FLIGHT_MAX
            || self.state.hub.memory_pressure().level() == MemoryLevel::Critical
    }

    /// Whether a batch has no room for another message.
    pub(super) fn is_batch_full(&self) -> bool {
        self.batches.iter().any(|batch| batch.batch.is_full())
    }

    fn wait(&mut self, events: &mut Events, timeout: Duration) {
        match self.parts.poll.poll(events, Some(timeout)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(error) => panic!("BUG: polling an own epoll descriptor failed: {error}"),
        }
        for event in events.iter() {
            let Token(slot) = event.token();
            let Some(connection) = self.connections.get_mut(slot) else { continue };
            let key = ConnectionKey { slot: slot as u32, generation: connection.generation };
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                connection.readable = true;
                connection.peer_closed |= event.is_read_closed() || event.is_error();
                enqueue(&mut self.ready, connection, key);
            }
            if event.is_writable() && connection.has_output() && !connection.dirty {
                connection.dirty = true;
                self.dirty.push(key);
            }
        }
    }

    /// Sends the acks of received messages, then disconnects and closes all connections.
    fn drain(&mut self, events: &mut Events) {
        let deadline = Instant::now() + Duration::from_millis(limits::DRAIN_TIMEOUT_MS);
        loop {
            self.publish_wills();
            self.append_batches();
            self.release_acks();
            self.send_deferred();
            self.confirm_dead_letters();
            self.flush_dirty();
            let is_done = self.queues.is_empty() && self.deferred.is_empty() && !self.ended.await_store();
            if is_done && !self.stalled && self.wills.is_empty() {
                break;
            }
            if Instant::now() >= deadline {
                let messages: u64 = self.batches.iter().map(|batch| batch.accepted().messages).sum();
                if messages > 0 {
                    tracing::error!(
                        messages,
                        "stopping while the store is busy: messages read were not stored"
                    );
                }
                self.discard_wills();
                break;
            }
            self.wait(events, Duration::from_millis(20));
        }
        let keys: Vec<ConnectionKey> = self
            .connections
            .iter()
            .map(|(slot, connection)| ConnectionKey { slot: slot as u32, generation: connection.generation })
            .collect();
        for key in keys {
            let mut end = SessionEnd::normal("the server shuts down");
            end.reason = Some(ReasonCode::SERVER_SHUTTING_DOWN);
            self.close(key, end);
        }
    }
}
