//! One event loop: sockets to batches, durability to acks.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hub::{Blame, Durability, IngestError, Progress, ProgressWatcher};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use parking_lot::Mutex;
use slab::Slab;
use wire::mqtt::{ProtocolVersion, ReasonCode};

use super::acks::{AckGroup, AckQueues, ConnectionKey, PendingAck};
use super::clients::Place;
use super::connection::{Connection, ReadOutcome};
use super::session::{self, Close, Context, Session, TurnBatch};
use super::{Door, limits};

const WAKER: Token = Token(usize::MAX);

/// What other threads have for a worker.
pub(super) struct Inbox {
    waker: Waker,
    /// The worker waits for the store; without it progress is no news.
    awaits_progress: AtomicBool,
    letters: Mutex<Letters>,
}

#[derive(Default)]
struct Letters {
    connections: Vec<(TcpStream, SocketAddr)>,
    taken_over: Vec<ConnectionKey>,
}

impl Inbox {
    pub(super) fn wake(&self) {
        // The only failure is a full counter of wake-ups, which is a wake-up.
        drop(self.waker.wake());
    }

    /// Hands a connection over. Waits for room: accepting faster than connections can be taken makes no sense.
    pub(super) fn add(&self, socket: TcpStream, peer: SocketAddr) {
        loop {
            let mut letters = self.letters.lock();
            if letters.connections.len() < limits::INBOX_MAX {
                let was_empty = letters.connections.is_empty();
                letters.connections.push((socket, peer));
                drop(letters);
                if was_empty {
                    self.wake();
                }
                return;
            }
            drop(letters);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn take_over(&self, connection: ConnectionKey) {
        self.letters.lock().taken_over.push(connection);
        self.wake();
    }
}

impl ProgressWatcher for Inbox {
    fn progress(&self, _: Progress) {
        if self.awaits_progress.load(Ordering::SeqCst) {
            self.wake();
        }
    }
}

/// What a worker needs before its thread starts.
pub(super) struct Seat {
    poll: Poll,
    pub(super) inbox: Arc<Inbox>,
}

impl Seat {
    pub(super) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let inbox = Inbox { waker, awaits_progress: AtomicBool::new(false), letters: Mutex::default() };
        Ok(Self { poll, inbox: Arc::new(inbox) })
    }
}

pub(super) struct Worker {
    door: Arc<Door>,
    index: usize,
    seat: Seat,
    connections: Slab<Connection>,
    next_generation: u32,
    read_buffer: Vec<u8>,
    /// Connections that may hold unread bytes and may be read from.
    ready: VecDeque<ConnectionKey>,
    /// Connections with something to send.
    dirty: Vec<ConnectionKey>,
    turn: [TurnBatch; 3],
    queues: AckQueues,
    /// The store had no room: nothing is read until it takes what was read before.
    stalled: bool,
    ticked_at_s: u32,
    registry_generation: u64,
    turn_began: Instant,
    last_turn_began: Instant,
    /// Messages that the last turn took.
    turn_messages: u64,
}

impl Worker {
    pub(super) fn new(door: Arc<Door>, index: usize, seat: Seat) -> Self {
        Self {
            registry_generation: door.hub.registry().generation(),
            door,
            index,
            seat,
            connections: Slab::new(),
            next_generation: 0,
            read_buffer: vec![0; limits::READ_BYTES_PER_TURN],
            ready: VecDeque::new(),
            dirty: Vec::new(),
            turn: Default::default(),
            queues: AckQueues::default(),
            stalled: false,
            ticked_at_s: 0,
            turn_began: Instant::now(),
            last_turn_began: Instant::now(),
            turn_messages: 0,
        }
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(limits::EVENTS_PER_POLL);
        while !self.door.is_stopping() {
            self.pace();
            let timeout = if self.can_read_now() { Duration::ZERO } else { Duration::from_secs(1) };
            self.wait(&mut events, timeout);
            self.last_turn_began = std::mem::replace(&mut self.turn_began, Instant::now());
            self.open_letters();
            self.read_ready();
            self.append_turn();
            self.release_acks();
            self.flush_dirty();
            self.tick();
        }
        self.drain(&mut events);
    }

    /// Lets messages gather when the last turn found few and came soon after the one before: on a machine where a
    /// wake-up costs as much as several messages this is what a message costs at medium rates.
    fn pace(&mut self) {
        let messages = std::mem::take(&mut self.turn_messages);
        if messages == 0 || messages >= limits::TURN_MESSAGES_ENOUGH {
            return;
        }
        let pace = Duration::from_micros(limits::TURN_PACE_US);
        let busy = self.turn_began.elapsed();
        let since_last = self.turn_began - self.last_turn_began;
        if since_last < 2 * pace && busy < pace {
            std::thread::sleep(pace - busy);
        }
    }

    fn can_read_now(&self) -> bool {
        !self.ready.is_empty() && !self.stalled && self.queues.groups() < limits::GROUPS_IN_FLIGHT_MAX
    }

    fn wait(&mut self, events: &mut Events, timeout: Duration) {
        match self.seat.poll.poll(events, Some(timeout)) {
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
                enqueue(&mut self.ready, connection, key);
            }
            if event.is_writable() && !connection.out.is_empty() && !connection.dirty {
                connection.dirty = true;
                self.dirty.push(key);
            }
        }
    }

    fn open_letters(&mut self) {
        let letters = std::mem::take(&mut *self.seat.inbox.letters.lock());
        for (socket, peer) in letters.connections {
            self.add_connection(socket, peer);
        }
        for key in letters.taken_over {
            let cause = "another connection uses this client identifier now [MQTT-3.1.4-3]";
            self.close(key, Close::refused(ReasonCode::SESSION_TAKEN_OVER, "taken_over", cause));
        }
    }

    fn add_connection(&mut self, mut socket: TcpStream, peer: SocketAddr) {
        // Acks are small and must not wait for more of them; a failure only costs latency.
        drop(socket.set_nodelay(true));
        drop(socket2::SockRef::from(&socket).set_keepalive(true));
        let entry = self.connections.vacant_entry();
        let slot = entry.key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.seat.poll.registry().register(&mut socket, Token(slot), interest) {
            tracing::error!(%peer, %error, "cannot watch a connection");
            self.door.connections.fetch_sub(1, Ordering::AcqRel);
            self.door.hub.metrics().door(hub::Door::Mqtt).connections.dec();
            return;
        }
        self.next_generation = self.next_generation.wrapping_add(1);
        entry.insert(Connection::new(socket, peer, self.next_generation, self.door.now_s()));
    }

    /// Reads once from every ready connection, so long as there is room.
    fn read_ready(&mut self) {
        let mut bytes = 0;
        for _ in 0..self.ready.len() {
            if !self.can_read_now() || bytes > limits::TURN_BYTES_MAX || self.turn_is_full() {
                return;
            }
            let Some(key) = self.ready.pop_front() else { return };
            bytes += self.read_one(key);
        }
    }

    fn turn_is_full(&self) -> bool {
        self.turn.iter().any(|turn| turn.batch.is_full())
    }

    fn read_one(&mut self, key: ConnectionKey) -> usize {
        let in_flight_max = u32::from(self.door.options.receive_maximum);
        let Some(connection) = find(&mut self.connections, key) else { return 0 };
        connection.queued = false;
        if !connection.readable || !connection.may_read(in_flight_max) {
            return 0;
        }
        let (bytes, outcome) = match connection.read(&mut self.read_buffer) {
            Ok(read) => read,
            Err(error) => {
                self.close(key, Close::quiet(format!("the connection broke: {error}")));
                return 0;
            }
        };
        connection.readable = outcome == ReadOutcome::More;
        if outcome == ReadOutcome::More {
            enqueue(&mut self.ready, connection, key);
        }
        let closed = if outcome == ReadOutcome::Closed {
            Err(Close::quiet("the peer closed the connection"))
        } else if bytes > 0 {
            self.take_bytes(key, bytes)
        } else {
            Ok(())
        };
        if let Err(close) = closed {
            self.close(key, close);
        }
        bytes
    }

    fn take_bytes(&mut self, key: ConnectionKey, bytes: usize) -> Result<(), Close> {
        let mut taken_over = None;
        let Some(connection) = find(&mut self.connections, key) else { return Ok(()) };
        let now_s = self.door.now_s();
        connection.heard_at_s = now_s;
        let mut out = std::mem::take(&mut connection.out);
        let mut context = Context {
            hub: &self.door.hub,
            options: &self.door.options,
            clients: &self.door.clients,
            place: Place { worker: self.index, connection: key },
            now: hub::clock::system_now(),
            now_s,
            out: &mut out,
            turn: &mut self.turn,
            taken_over: &mut taken_over,
        };
        let result = connection.on_bytes(&self.read_buffer[..bytes], &mut context);
        connection.out = out;
        if !connection.out.is_empty() && !connection.dirty {
            connection.dirty = true;
            self.dirty.push(key);
        }
        if let Some(place) = taken_over {
            self.door.inboxes[place.worker].take_over(place.connection);
        }
        result
    }

    /// Appends what this turn has read; keeps it when the store has no room.
    fn append_turn(&mut self) {
        self.stalled = false;
        for class in Durability::ALL {
            let turn = &mut self.turn[class as usize];
            if turn.batch.is_empty() && turn.acks.is_empty() {
                continue;
            }
            let appended = if turn.batch.is_empty() {
                // Repeated QoS 2 messages: what they stand for was appended before.
                Ok(self.door.hub.progress().appended)
            } else {
                self.door.hub.ingest(&turn.batch, class)
            };
            match appended {
                Ok(sequence) => self.await_durability(class, sequence),
                Err(error) if error.blame() == Blame::Busy => self.stalled = true,
                Err(error) => self.refuse_turn(class, &error),
            }
        }
    }

    fn await_durability(&mut self, class: Durability, sequence: hub::Sequence) {
        let acks = self.queues.new_list();
        let turn = &mut self.turn[class as usize];
        let metrics = self.door.hub.metrics().door(hub::Door::Mqtt);
        self.turn_messages += turn.messages;
        metrics.messages.inc_by(std::mem::take(&mut turn.messages));
        metrics.bytes.inc_by(std::mem::take(&mut turn.bytes));
        turn.batch.clear();
        let acks = std::mem::replace(&mut turn.acks, acks);
        self.queues.push(class, AckGroup { sequence, received: Instant::now(), acks });
    }

    /// The store takes nothing any more: the peers keep their messages and learn that there will be no ack.
    fn refuse_turn(&mut self, class: Durability, error: &IngestError) {
        let turn = &mut self.turn[class as usize];
        turn.batch.clear();
        (turn.messages, turn.bytes) = (0, 0);
        let acks = std::mem::take(&mut turn.acks);
        tracing::error!(%error, messages = acks.len(), "messages refused: the store cannot take them");
        self.close_unacked(acks, &error.to_string());
    }

    fn close_unacked(&mut self, acks: Vec<PendingAck>, cause: &str) {
        for ack in acks {
            self.close(
                ack.connection,
                Close::refused(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, "store", cause),
            );
        }
    }

    fn release_acks(&mut self) {
        self.seat.inbox.awaits_progress.store(!self.queues.is_empty() || self.stalled, Ordering::SeqCst);
        let progress = self.door.hub.progress();
        while let Some(group) = self.queues.pop_reached(progress) {
            self.send_acks(group);
        }
        if progress.sealed {
            while let Some(group) = self.queues.pop_any() {
                self.close_unacked(
                    group.acks,
                    "the store was sealed by a failed write before this was durable",
                );
            }
        }
    }

    fn send_acks(&mut self, mut group: AckGroup) {
        let latency_s = group.received.elapsed().as_secs_f64();
        let metrics = self.door.hub.metrics().door(hub::Door::Mqtt);
        let in_flight_max = u32::from(self.door.options.receive_maximum);
        for ack in group.acks.drain(..) {
            metrics.ack_latency.observe(latency_s);
            let key = ack.connection;
            let Some(connection) = find(&mut self.connections, key) else { continue };
            let Session::Connected(connected) = &mut connection.session else { continue };
            if ack.kind != super::acks::AckKind::None {
                connected.in_flight -= 1;
            }
            session::write_ack(&ack, connected.version, &mut connection.out);
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

    fn flush_dirty(&mut self) {
        let in_flight_max = u32::from(self.door.options.receive_maximum);
        for key in std::mem::take(&mut self.dirty) {
            let Some(connection) = find(&mut self.connections, key) else { continue };
            connection.dirty = false;
            match connection.flush() {
                Ok(_) if connection.out.len() > limits::UNSENT_BYTES_CLOSE => {
                    let cause = "the peer does not read its acks";
                    self.close(key, Close::refused(ReasonCode::QUOTA_EXCEEDED, "unread_acks", cause));
                }
                Ok(_) if connection.readable && connection.may_read(in_flight_max) => {
                    enqueue(&mut self.ready, connection, key);
                }
                Ok(_) => {}
                Err(error) => self.close(key, Close::quiet(format!("the connection broke: {error}"))),
            }
        }
    }

    /// Once a second: silent peers and deleted devices.
    fn tick(&mut self) {
        let now_s = self.door.now_s();
        if now_s == self.ticked_at_s {
            return;
        }
        self.ticked_at_s = now_s;
        let registry_generation = self.door.hub.registry().generation();
        let registry_changed =
            std::mem::replace(&mut self.registry_generation, registry_generation) != registry_generation;
        let mut overdue = Vec::new();
        for (slot, connection) in &mut self.connections {
            if self.stalled || connection.readable {
                // We are the silent side: the peer may have sent what we do not read.
                connection.heard_at_s = now_s;
            }
            let key = ConnectionKey { slot: slot as u32, generation: connection.generation };
            if let Some(close) = overdue_close(connection, now_s, &self.door.options) {
                overdue.push((key, close));
            } else if registry_changed && is_deleted(connection, &self.door) {
                let cause = "the device was deleted";
                overdue.push((key, Close::refused(ReasonCode::NOT_AUTHORIZED, "device_deleted", cause)));
            }
        }
        for (key, close) in overdue {
            self.close(key, close);
        }
    }

    fn close(&mut self, key: ConnectionKey, close: Close) {
        let Some(mut connection) = take(&mut self.connections, key) else { return };
        let peer = connection.peer;
        if let Some(label) = close.label {
            self.door.hub.metrics().refused(hub::Door::Mqtt, label);
            tracing::warn!(%peer, cause = close.cause, "closed an MQTT connection");
        } else {
            tracing::debug!(%peer, cause = close.cause, "an MQTT connection ended");
        }
        if let (Some(reason), Some(ProtocolVersion::V5)) = (close.reason, connection.session.version()) {
            session::write_disconnect(reason, &close.cause, &mut connection.out);
        }
        let mut out = std::mem::take(&mut connection.out);
        let mut context = Context {
            hub: &self.door.hub,
            options: &self.door.options,
            clients: &self.door.clients,
            place: Place { worker: self.index, connection: key },
            now: hub::clock::system_now(),
            now_s: self.door.now_s(),
            out: &mut out,
            turn: &mut self.turn,
            taken_over: &mut None,
        };
        // A will says that the device is gone; when the server goes, it is not [MQTT5 3.1.2.5].
        connection.session.on_end(!self.door.is_stopping(), &mut context);
        connection.out = out;
        // Best effort: the peer may be gone.
        drop(connection.flush());
        drop(self.seat.poll.registry().deregister(&mut connection.socket));
        self.door.connections.fetch_sub(1, Ordering::AcqRel);
        self.door.hub.metrics().door(hub::Door::Mqtt).connections.dec();
    }

    /// Sends the acks of what was read, says goodbye, and closes.
    fn drain(&mut self, events: &mut Events) {
        let deadline = Instant::now() + Duration::from_millis(limits::DRAIN_TIMEOUT_MS);
        loop {
            self.append_turn();
            self.release_acks();
            self.flush_dirty();
            if (self.queues.is_empty() && !self.stalled) || Instant::now() >= deadline {
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
            let mut close = Close::quiet("the server shuts down");
            close.reason = Some(ReasonCode::SERVER_SHUTTING_DOWN);
            self.close(key, close);
        }
    }
}

fn overdue_close(connection: &Connection, now_s: u32, options: &super::MqttOptions) -> Option<Close> {
    let silent_s = now_s.saturating_sub(connection.heard_at_s);
    match &connection.session {
        Session::New if silent_s > options.connect_timeout_s => {
            let cause = format!("no CONNECT within {} s", options.connect_timeout_s);
            Some(Close::refused(ReasonCode::MAXIMUM_CONNECT_TIME, "connect_timeout", cause))
        }
        Session::New => None,
        Session::Connected(connected)
            if connected.silence_max_s > 0 && silent_s > connected.silence_max_s =>
        {
            let cause =
                format!("nothing heard for {silent_s} s, more than 1.5 times the keep-alive [MQTT-3.1.2-22]");
            Some(Close::refused(ReasonCode::KEEP_ALIVE_TIMEOUT, "keep_alive", cause))
        }
        Session::Connected(_) if connection.has_partial() && silent_s > limits::PARTIAL_PACKET_TIMEOUT_S => {
            let cause =
                format!("the rest of a packet did not arrive within {} s", limits::PARTIAL_PACKET_TIMEOUT_S);
            Some(Close::refused(ReasonCode::KEEP_ALIVE_TIMEOUT, "partial_packet", cause))
        }
        Session::Connected(_) => None,
    }
}

fn is_deleted(connection: &Connection, door: &Door) -> bool {
    match &connection.session {
        Session::New => false,
        Session::Connected(connected) => door.hub.registry().device_by_id(connected.device.id).is_none(),
    }
}

fn enqueue(ready: &mut VecDeque<ConnectionKey>, connection: &mut Connection, key: ConnectionKey) {
    if !connection.queued {
        connection.queued = true;
        ready.push_back(key);
    }
}

fn find(connections: &mut Slab<Connection>, key: ConnectionKey) -> Option<&mut Connection> {
    connections.get_mut(key.slot as usize).filter(|connection| connection.generation == key.generation)
}

fn take(connections: &mut Slab<Connection>, key: ConnectionKey) -> Option<Connection> {
    find(connections, key)?;
    Some(connections.remove(key.slot as usize))
}
