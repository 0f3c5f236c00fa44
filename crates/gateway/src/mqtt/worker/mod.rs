//! One event loop: sockets to batches, durability to acks.
//!
//! While the store takes no messages (it is busy, or too many batches wait for their sync) connections are read on, a
//! little at a time, so that pings are answered and farewells heard; each is held at its first message, which stays
//! in the connection until the store has room.

mod append;
mod overdue;
mod room;
mod wills;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hub::clock::system_now;
use mio::net::TcpStream;
use mio::{Events, Interest, Token};
use model::panics::contain_panic;
use slab::Slab;
use wire::mqtt::ReasonCode;

use super::acks::{AckQueues, ConnectionKey};
use super::clients::Place;
use super::connection::{Connection, Handled, ReadOutcome};
use super::inbox::Seat;
use super::session::{Close, Context, Session};
use super::turn::TurnBatch;
use super::{Door, limits};
use crate::refusals;
use wills::Wills;

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
    /// Connections whose next message waits for the store.
    held: Vec<ConnectionKey>,
    /// Connections in the order in which they were opened, those with a session among them until it is their turn to be
    /// looked at.
    silent: VecDeque<ConnectionKey>,
    wills: Wills,
    /// Bytes that came and are not handled, over all connections.
    partial_bytes: usize,
    turn: [TurnBatch; 3],
    queues: AckQueues,
    /// The store had no room: no message is taken until it has.
    stalled: bool,
    /// In this turn a message could not even be put into the batch.
    not_now: bool,
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
            held: Vec::new(),
            silent: VecDeque::new(),
            wills: Wills::default(),
            partial_bytes: 0,
            turn: Default::default(),
            queues: AckQueues::default(),
            stalled: false,
            not_now: false,
            ticked_at_s: 0,
            turn_began: Instant::now(),
            last_turn_began: Instant::now(),
            turn_messages: 0,
        }
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(limits::EVENTS_PER_POLL);
        while !self.door.is_stopping() {
            let patience = if self.pace() { Duration::ZERO } else { self.patience() };
            self.wait(&mut events, patience);
            self.last_turn_began = std::mem::replace(&mut self.turn_began, Instant::now());
            self.open_letters();
            self.resume_held();
            self.publish_wills();
            self.read_ready();
            self.append_turn();
            self.release_acks();
            self.flush_dirty();
            self.tick();
        }
        self.drain(&mut events);
    }

    /// Lets messages gather when the last turn found few and came soon after the one before: on a machine where a
    /// wake-up costs as much as several messages this is what a message costs at medium rates. Ends early when acks
    /// can leave. Returns whether it paused.
    fn pace(&mut self) -> bool {
        let messages = std::mem::take(&mut self.turn_messages);
        if messages == 0 || messages >= limits::TURN_MESSAGES_ENOUGH {
            return false;
        }
        let pace = Duration::from_micros(limits::TURN_PACE_US);
        let rest = pace.saturating_sub(self.turn_began.elapsed());
        let since_last = self.turn_began - self.last_turn_began;
        if since_last >= 2 * pace || rest.is_zero() {
            return false;
        }
        let nap = self.seat.inbox.begin_nap();
        // Progress that came before the nap was announced elsewhere.
        if !self.queues.is_reached(self.door.hub.progress()) {
            nap.sleep(rest);
        }
        true
    }

    /// How long to wait for events.
    fn patience(&self) -> Duration {
        let blocked = self.is_blocked();
        let nothing_waits = self.held.is_empty() && self.wills.is_empty();
        match self.ready.is_empty() && (blocked || nothing_waits) {
            false => Duration::ZERO,
            true if blocked => Duration::from_millis(limits::STALLED_RETRY_MS),
            true => Duration::from_secs(1),
        }
    }

    /// Whether messages have to wait.
    fn is_blocked(&self) -> bool {
        self.stalled || self.not_now || self.queues.groups() >= limits::GROUPS_IN_FLIGHT_MAX
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
                connection.peer_closed |= event.is_read_closed() || event.is_error();
                enqueue(&mut self.ready, connection, key);
            }
            if event.is_writable() && !connection.out.is_empty() && !connection.dirty {
                connection.dirty = true;
                self.dirty.push(key);
            }
        }
    }

    fn open_letters(&mut self) {
        let letters = self.seat.inbox.open();
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
        let key = ConnectionKey { slot: slot as u32, generation: self.next_generation };
        self.silent.push_back(key);
        self.close_silent();
    }

    /// Goes on with the messages that waited for the store.
    fn resume_held(&mut self) {
        let mut bytes = 0;
        for key in std::mem::take(&mut self.held) {
            let no_room = self.is_blocked() || bytes > limits::TURN_BYTES_MAX || self.turn_is_full();
            let Some(connection) = find(&mut self.connections, key) else { continue };
            if no_room {
                self.held.push(key);
                continue;
            }
            bytes += connection.partial_bytes();
            connection.held = false;
            // What came meanwhile was left in the socket.
            connection.readable = true;
            enqueue(&mut self.ready, connection, key);
            if let Err(close) = self.take_bytes(key, 0) {
                self.close(key, close);
            }
        }
    }

    /// Reads once from every ready connection, so long as there is room.
    fn read_ready(&mut self) {
        let mut bytes = 0;
        for _ in 0..self.ready.len() {
            if !self.is_blocked() && (bytes > limits::TURN_BYTES_MAX || self.turn_is_full()) {
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
        let bytes_max = match self.is_blocked() {
            true => limits::READ_BYTES_WHILE_STALLED,
            false => limits::READ_BYTES_PER_TURN,
        };
        let Some(connection) = find(&mut self.connections, key) else { return 0 };
        connection.queued = false;
        if connection.held || !connection.readable || !connection.may_read(in_flight_max) {
            return 0;
        }
        let (bytes, outcome) = match connection.read(&mut self.read_buffer[..bytes_max]) {
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
            connection.heard_at_s = self.door.now_s();
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
        let takes_messages = !self.is_blocked();
        let Some(connection) = find(&mut self.connections, key) else { return Ok(()) };
        let partial_before = connection.partial_bytes();
        let mut out = std::mem::take(&mut connection.out);
        let out_before = out.len();
        let mut context = Context {
            hub: &self.door.hub,
            options: &self.door.options,
            clients: &self.door.clients,
            place: Place { worker: self.index, connection: key },
            peer: connection.peer,
            now: system_now(),
            received: None,
            now_s: self.door.now_s(),
            takes_messages,
            out: &mut out,
            turn: &mut self.turn,
            taken_over: &mut taken_over,
        };
        // A client that brings a bug out again and again is not to end the server each time. What was not completed is not
        // in the batch; what the store itself is amid ends the process all the same.
        let handled = contain_panic(|| connection.on_bytes(&self.read_buffer[..bytes], &mut context));
        let result = handled.unwrap_or_else(|_| {
            // An answer may be there by half.
            out.truncate(out_before);
            let cause = "the server failed at what came; its log says why";
            Err(Close::refused(ReasonCode::UNSPECIFIED_ERROR, "panic", cause))
        });
        connection.out = out;
        self.partial_bytes = self.partial_bytes + connection.partial_bytes() - partial_before;
        if !connection.out.is_empty() && !connection.dirty {
            connection.dirty = true;
            self.dirty.push(key);
        }
        if let Some(place) = taken_over {
            self.door.inboxes[place.worker].take_over(place.connection);
        }
        match result? {
            Handled::UpToMessage => {
                self.hold(key);
                self.not_now |= takes_messages;
                Ok(())
            }
            Handled::All if self.partial_bytes > self.door.options.partial_bytes_max() => {
                self.close_largest_partial(key)
            }
            Handled::All => Ok(()),
        }
    }

    fn hold(&mut self, key: ConnectionKey) {
        if let Some(connection) = find(&mut self.connections, key) {
            connection.held = true;
            self.held.push(key);
        }
    }

    fn flush_dirty(&mut self) {
        let in_flight_max = u32::from(self.door.options.receive_maximum);
        let now_s = self.door.now_s();
        for key in std::mem::take(&mut self.dirty) {
            let Some(connection) = find(&mut self.connections, key) else { continue };
            connection.dirty = false;
            match connection.flush(now_s) {
                Ok(_) if connection.readable && connection.may_read(in_flight_max) => {
                    enqueue(&mut self.ready, connection, key);
                }
                Ok(_) => {}
                Err(error) => self.close(key, Close::quiet(format!("the connection broke: {error}"))),
            }
        }
    }

    fn close(&mut self, key: ConnectionKey, close: Close) {
        let Some(mut connection) = take(&mut self.connections, key) else { return };
        let peer = connection.peer;
        if let Some(label) = close.label {
            self.door.hub.metrics().refused(hub::Door::Mqtt, label);
            let device = match &connection.session {
                Session::Connected(connected) => Some(&*connected.device),
                Session::New => None,
            };
            let (hub, counts) = (&self.door.hub, close.is_for_what_came());
            refusals::connection(hub, hub::Door::Mqtt, peer, device, counts, &close.cause);
        } else {
            tracing::debug!(%peer, cause = close.cause, "an MQTT connection ended");
        }
        self.partial_bytes -= connection.partial_bytes();
        if let (Some(reason), Session::Connected(connected)) = (close.reason, &connection.session) {
            connected.peer.write_disconnect(reason, &close.cause, &mut connection.out);
        }
        self.end_session(std::mem::take(&mut connection.session), key, peer);
        connection.part(self.door.now_s(), &mut self.read_buffer);
        drop(self.seat.poll.registry().deregister(&mut connection.socket));
        self.door.connections.fetch_sub(1, Ordering::AcqRel);
        self.door.hub.metrics().door(hub::Door::Mqtt).connections.dec();
    }

    /// Sends the acks of what was read, says goodbye, and closes.
    fn drain(&mut self, events: &mut Events) {
        let deadline = Instant::now() + Duration::from_millis(limits::DRAIN_TIMEOUT_MS);
        loop {
            self.publish_wills();
            self.append_turn();
            self.release_acks();
            self.flush_dirty();
            if self.queues.is_empty() && !self.stalled && self.wills.is_empty() {
                break;
            }
            if Instant::now() >= deadline {
                let messages: u64 = self.turn.iter().map(|turn| turn.messages).sum();
                if messages > 0 {
                    tracing::error!(
                        messages,
                        "stopping while the store is busy: messages read were not stored"
                    );
                }
                self.lose_wills();
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
