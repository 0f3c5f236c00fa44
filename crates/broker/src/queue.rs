//! The messages of one session: what waits, what was sent, and what the client has acknowledged.
//!
//! The queue is a state machine without locks, clock or disk. Messages of QoS 1 and 2 have consecutive numbers. The packet
//! identifier of a message follows from its number ([`packet_id`]), so a message that is sent again, even by another process,
//! has the identifier that it had [MQTT-4.4.0-1].
//!
//! A session that outlives its connections has its messages in the key-value engine too. Then memory has a window of them: the
//! first ones, in order.
//!
//! Invariant 1: a message is sent only when it is durable (`durable_at`), if the session is.
//! Invariant 2: numbers below `window_end` are in the window, in flight or done; the others, if there are any, are in the engine.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::limits;
use super::message::{CallOf, Delivery, GroupMessage, Message};
use super::subscription::Quality;

/// Places that a list keeps.
const PLACES_KEPT: usize = 64;
/// See [`Queue::place_bytes`]: about as many places.
const PLACES_STEP_BYTES: usize = PLACES_KEPT * size_of::<Delivery>();

/// The messages of a session.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Messages of QoS 0.
    immediate: VecDeque<Delivery>,
    window: VecDeque<Waiting>,
    inflight: VecDeque<Inflight>,
    /// The number of the next message.
    next_number: u64,
    window_end: u64,
    /// The engine has messages from this number on that are not in the window.
    stored_from: Option<u64>,
    /// Numbers from `stored_from` on that are done, ascending. The engine may not have deleted them yet.
    done: Vec<Range<u64>>,
    /// Messages with a lower number may have been sent before.
    sent_below: u64,
    /// Those with a lower number were sent to an earlier connection. After a restart it is not known which were.
    surely_sent_below: u64,
    /// Entries of `inflight` whose PUBREL is due.
    releases_due: usize,
    /// Messages of QoS 1 and 2 that are not done.
    messages: u64,
    bytes: u64,
}

/// A message of QoS 1 or 2 that waits in memory.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) number: u64,
    /// `None` if the client has received the message and only PUBREL is due.
    pub(super) delivery: Option<Delivery>,
    /// The message may be sent when the engine has made this sequence durable.
    pub(super) durable_at: u64,
    /// The identifier of the content, if several queues share it in the engine.
    pub(super) shared: Option<u64>,
}

#[derive(Debug)]
struct Inflight {
    number: u64,
    bytes: u64,
    shared: Option<u64>,
    call: Option<CallOf>,
    phase: Phase,
    /// The message, if another member of its group takes it over when the session ends.
    group: Option<GroupMessage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// PUBLISH was sent with this quality of service.
    Sent(Quality),
    /// The client has received a message of QoS 2. PUBREL is due when the engine has made this sequence durable.
    ReleaseDue(u64),
    /// PUBREL was sent.
    Released,
}

/// A message that is done: the engine may delete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) number: u64,
    pub(super) shared: Option<u64>,
    /// The stored call that the message was, if the client has acknowledged it.
    pub(super) call: Option<CallOf>,
}

/// What is left of the queue of a session that has ended.
#[derive(Debug, Default)]
pub(super) struct QueueRest {
    /// Messages of shared subscriptions that the engine does not have.
    pub(super) in_memory: VecDeque<GroupMessage>,
    /// The first so many of them were sent.
    pub(super) in_memory_sent: usize,
    /// The engine has the messages with numbers from this one on, without those of `done`.
    pub(super) stored_from: u64,
    /// Numbers that are done, ascending.
    pub(super) done: Vec<Range<u64>>,
    /// Messages with a lower number may have been sent.
    pub(super) sent_below: u64,
}

/// A packet for the client.
#[derive(Debug)]
pub enum Outgoing<'a> {
    Publish {
        message: &'a Arc<Message>,
        /// Quality of service.
        qos: Quality,
        /// The retain flag.
        retain: bool,
        /// The message may have been sent before.
        duplicate: bool,
        /// Present if `qos` is not 0.
        packet_id: Option<u16>,
        /// Subscription identifiers.
        identifiers: &'a [u32],
    },
    /// PUBREL.
    Release {
        /// The identifier of the message.
        packet_id: u16,
    },
}

/// What the door did with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The packet is in the output of the connection.
    Yes,
    /// The output has no room. The queue keeps the packet.
    NoRoom,
    /// The packet exceeds the Maximum Packet Size of the client. The message counts as delivered [MQTT-3.1.2-25].
    TooLarge,
}

/// Why the queue sends no further packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleReason {
    /// Nothing waits.
    Nothing,
    /// The window is empty and the engine has further messages.
    InStore {
        /// The number of the first one.
        from: u64,
    },
    /// The next packet waits until the engine has made a sequence durable.
    Undurable,
    /// The next packet waits for an ack of the client, or for room in the output.
    Client,
}

/// The queue has reached a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) limit: &'static str,
    pub(super) max: u64,
}

/// The packet identifier of the message with a number.
pub(super) fn packet_id(number: u64) -> u16 {
    (number % u64::from(u16::MAX)) as u16 + 1
}

impl Queue {
    /// The queue of a session that the engine has kept: `messages` with numbers from `first` to below `end`.
    pub(super) fn stored(first: u64, end: u64, messages: u64, bytes: u64) -> Self {
        Self {
            next_number: end,
            window_end: first,
            stored_from: (messages > 0).then_some(first),
            sent_below: end,
            messages,
            bytes,
            ..Self::default()
        }
    }

    /// Takes a number for a message of QoS 1 or 2.
    pub(super) fn reserve(&mut self, bytes: u64) -> Result<u64, Full> {
        if self.messages >= limits::QUEUE_MESSAGES_MAX {
            return Err(Full { limit: "QUEUE_MESSAGES_MAX", max: limits::QUEUE_MESSAGES_MAX });
        }
        if self.bytes + bytes > limits::QUEUE_BYTES_MAX {
            return Err(Full { limit: "QUEUE_BYTES_MAX", max: limits::QUEUE_BYTES_MAX });
        }
        self.messages += 1;
        self.bytes += bytes;
        self.next_number += 1;
        Ok(self.next_number - 1)
    }

    /// Gives back the number that was taken last.
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.messages -= 1;
        self.bytes -= bytes;
        self.next_number -= 1;
    }

    /// Adds a message under the number that it has reserved. `keep` indicates whether memory may hold it; if not, the engine has it.
    pub(super) fn push(&mut self, waiting: Waiting, keep: bool) {
        if waiting.number < self.window_end {
            // It was loaded from the engine between the write and this call.
            return;
        }
        match self.stored_from {
            Some(_) => {}
            None if keep => {
                self.window_end = waiting.number + 1;
                self.window.push_back(waiting);
            }
            None => self.stored_from = Some(waiting.number),
        }
    }

    /// Number of messages in the window.
    pub(super) fn window_len(&self) -> usize {
        self.window.len()
    }

    /// Adds a message of QoS 0. Returns false if too many wait.
    pub(super) fn push_immediate(&mut self, delivery: Delivery) -> bool {
        let has_room = self.immediate.len() < limits::IMMEDIATE_MESSAGES_MAX;
        if has_room {
            self.immediate.push_back(delivery);
        }
        has_room
    }

    /// Adds what was loaded from the engine, in the order of the numbers. `end` is the number after the last one that was
    /// read; `has_more` tells that the engine has further ones.
    pub(super) fn load(&mut self, loaded: Vec<Waiting>, end: u64, has_more: bool) {
        self.window.extend(loaded);
        self.window_end = self.window_end.max(end);
        self.stored_from = has_more.then_some(end);
        self.done.retain(|done| done.end > end);
        if let Some(first) = self.done.first_mut() {
            first.start = first.start.max(end);
        }
    }

    /// Whether a message that the engine has is done.
    pub(super) fn is_done(&self, number: u64) -> bool {
        contains(&self.done, number)
    }

    /// Forgets what memory holds of a session whose messages are in the engine. They are sent again to the next connection.
    pub(super) fn return_to_store(&mut self) {
        let first = self.in_memory().next().or(self.stored_from);
        let mut done = self.gaps();
        done.append(&mut self.done);
        self.done = done;
        let sent = self.inflight.back().map_or(0, |last| last.number + 1);
        self.sent_below = self.sent_below.max(sent);
        self.surely_sent_below = self.surely_sent_below.max(sent);
        self.immediate = VecDeque::new();
        self.window = VecDeque::new();
        self.inflight = VecDeque::new();
        self.releases_due = 0;
        self.stored_from = first;
        self.window_end = first.unwrap_or(self.window_end);
    }

    /// Numbers of the messages in memory, ascending.
    fn in_memory(&self) -> impl Iterator<Item = u64> {
        let inflight = self.inflight.iter().map(|entry| entry.number);
        inflight.chain(self.window.iter().map(|waiting| waiting.number))
    }

    /// The numbers between those in memory.
    fn gaps(&self) -> Vec<Range<u64>> {
        let mut numbers = self.in_memory();
        let Some(first) = numbers.next() else { return Vec::new() };
        let mut next = first + 1;
        let mut gaps = Vec::new();
        for number in numbers.chain([self.window_end]) {
            if number > next {
                gaps.push(next..number);
            }
            next = number + 1;
        }
        gaps
    }

    /// What is left when the session ends. `is_durable` indicates whether the engine has the messages.
    pub(super) fn end(mut self, is_durable: bool) -> QueueRest {
        if is_durable {
            self.return_to_store();
            let stored_from = self.stored_from.unwrap_or(self.window_end);
            let Self { done, sent_below, .. } = self;
            return QueueRest { stored_from, done, sent_below, ..QueueRest::default() };
        }
        let mut in_memory: VecDeque<_> = self.inflight.into_iter().filter_map(|entry| entry.group).collect();
        let in_memory_sent = in_memory.len();
        let waiting = self.window.iter().filter_map(|waiting| waiting.delivery.as_ref());
        in_memory.extend(waiting.filter_map(GroupMessage::of));
        QueueRest { in_memory, in_memory_sent, ..QueueRest::default() }
    }

    /// Bytes that the places of messages take, without the messages. Small queues count as nothing, and others change in steps, so that
    /// a session seldom counts anew.
    pub(super) fn place_bytes(&self) -> usize {
        let immediate = self.immediate.capacity() * size_of::<Delivery>();
        let window = self.window.capacity() * size_of::<Waiting>();
        let bytes = immediate + window + self.inflight.capacity() * size_of::<Inflight>();
        bytes / PLACES_STEP_BYTES * PLACES_STEP_BYTES
    }

    /// Makes places for the numbers that are taken, all of which memory will hold.
    pub(super) fn make_places(&mut self) {
        self.window.reserve((self.next_number - self.window_end) as usize);
    }

    /// Frees places that queues have needed before and do not need now.
    pub(super) fn free_places(&mut self) {
        shrink(&mut self.immediate);
        shrink(&mut self.window);
        shrink(&mut self.inflight);
    }

    /// Whether no message of QoS 1 or 2 is left to be done.
    pub(super) fn is_all_done(&self) -> bool {
        self.messages == 0
    }

    /// Passes packets to `send` as long as the client takes them and `inflight_max` allows.
    pub(super) fn send(
        &mut self,
        inflight_max: u16,
        now_ms: i64,
        durable: u64,
        done: &mut Vec<Done>,
        send: &mut dyn FnMut(&Outgoing<'_>) -> Sent,
    ) -> IdleReason {
        if self.send_immediate(now_ms, send) == Sent::NoRoom
            || self.send_releases(durable, send) == Sent::NoRoom
        {
            return IdleReason::Client;
        }
        while let Some(first) = self.window.front() {
            if first.durable_at > durable {
                return IdleReason::Undurable;
            }
            if self.inflight.len() >= usize::from(inflight_max) || self.is_taken(first.number) {
                return self.blocked_by_client();
            }
            let sent = match &first.delivery {
                // Nobody gets a message after its expiry, unless it was sent before [MQTT-4.3.3-7]. It is done like one that the client
                // cannot take.
                Some(delivery)
                    if delivery.message.is_expired(now_ms) && first.number >= self.surely_sent_below =>
                {
                    Sent::TooLarge
                }
                _ => send(&first.packet(self.sent_below)),
            };
            if sent == Sent::NoRoom {
                return IdleReason::Client;
            }
            let first = self.window.pop_front().expect("BUG: the window has a first message");
            let Waiting { number, delivery, shared, .. } = first;
            let bytes = delivery.as_ref().map_or(0, |delivery| delivery.message.bytes());
            let call = delivery.as_ref().and_then(|delivery| delivery.call);
            let group = delivery.as_ref().and_then(GroupMessage::of);
            let phase = delivery.map_or(Phase::Released, |delivery| Phase::Sent(delivery.qos));
            let inflight = Inflight { number, bytes, shared, call, phase, group };
            if sent == Sent::Yes {
                self.inflight.push_back(inflight);
            } else {
                done.push(self.finish(&inflight));
            }
        }
        match (self.stored_from, self.releases_due) {
            (Some(from), _) if self.inflight.len() < usize::from(inflight_max) => {
                IdleReason::InStore { from }
            }
            (Some(_), _) => self.blocked_by_client(),
            (None, 0) => IdleReason::Nothing,
            (None, _) => IdleReason::Undurable,
        }
    }

    /// Why no further PUBLISH may follow until the client has completed an exchange. The next packet of that exchange may be a
    /// PUBREL that is due when the engine has made progress.
    fn blocked_by_client(&self) -> IdleReason {
        if self.releases_due > 0 { IdleReason::Undurable } else { IdleReason::Client }
    }

    fn send_immediate(&mut self, now_ms: i64, send: &mut dyn FnMut(&Outgoing<'_>) -> Sent) -> Sent {
        while let Some(delivery) = self.immediate.front() {
            let packet = delivery.packet(None, false);
            if !delivery.message.is_expired(now_ms) && send(&packet) == Sent::NoRoom {
                return Sent::NoRoom;
            }
            self.immediate.pop_front();
        }
        Sent::Yes
    }

    fn send_releases(&mut self, durable: u64, send: &mut dyn FnMut(&Outgoing<'_>) -> Sent) -> Sent {
        if self.releases_due == 0 {
            return Sent::Yes;
        }
        for entry in &mut self.inflight {
            match entry.phase {
                Phase::ReleaseDue(at) if at <= durable => {}
                _ => continue,
            }
            if send(&Outgoing::Release { packet_id: packet_id(entry.number) }) == Sent::NoRoom {
                return Sent::NoRoom;
            }
            entry.phase = Phase::Released;
            self.releases_due -= 1;
        }
        Sent::Yes
    }

    /// Whether a message in flight has the packet identifier of this number.
    fn is_taken(&self, number: u64) -> bool {
        self.inflight.front().is_some_and(|first| number - first.number >= u64::from(u16::MAX))
    }

    /// The client acknowledges a message of QoS 1.
    pub(super) fn on_puback(&mut self, id: u16) -> Option<Done> {
        self.remove(id, |phase| phase == Phase::Sent(Quality::AtLeastOnce))
    }

    /// The number of a message of QoS 2 that the client has received, or `None` if no such message is in flight.
    pub(super) fn received(&self, id: u16) -> Option<u64> {
        let found = self.inflight.iter().find(|entry| packet_id(entry.number) == id)?;
        (found.phase != Phase::Sent(Quality::AtLeastOnce)).then_some(found.number)
    }

    /// The client has received a message of QoS 2. PUBREL follows when the engine has made `durable_at` durable. Returns the
    /// shared content that the message does not need any more.
    pub(super) fn on_pubrec(&mut self, id: u16, durable_at: u64) -> Option<u64> {
        let entry = self.inflight.iter_mut().find(|entry| packet_id(entry.number) == id)?;
        if !matches!(entry.phase, Phase::ReleaseDue(_)) {
            self.releases_due += 1;
        }
        entry.phase = Phase::ReleaseDue(durable_at);
        entry.group = None;
        entry.shared.take()
    }

    /// The client refuses a message of QoS 2, which ends the exchange [MQTT5 4.3.3].
    pub(super) fn on_refusal(&mut self, id: u16) -> Option<Done> {
        self.remove(id, |phase| phase == Phase::Sent(Quality::ExactlyOnce))
    }

    /// The client completes a message of QoS 2.
    pub(super) fn on_pubcomp(&mut self, id: u16) -> Option<Done> {
        self.remove(id, |phase| phase == Phase::Released)
    }

    fn remove(&mut self, id: u16, fits: impl Fn(Phase) -> bool) -> Option<Done> {
        let at = self.inflight.iter().position(|entry| packet_id(entry.number) == id && fits(entry.phase))?;
        let entry = self.inflight.remove(at).expect("BUG: the position exists");
        Some(self.finish(&entry))
    }

    fn finish(&mut self, entry: &Inflight) -> Done {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(entry.bytes);
        Done { number: entry.number, shared: entry.shared, call: entry.call }
    }
}

impl QueueRest {
    /// Whether a message that the engine has is done.
    pub(super) fn is_done(&self, number: u64) -> bool {
        number < self.stored_from || contains(&self.done, number)
    }
}

/// Halves a capacity of which less than a quarter is in use.
fn shrink<T>(list: &mut VecDeque<T>) {
    if list.capacity() > PLACES_KEPT && list.len() < list.capacity() / 4 {
        list.shrink_to(PLACES_KEPT.max(list.capacity() / 2));
    }
}

/// Whether one of the ascending ranges has a number.
fn contains(ranges: &[Range<u64>], number: u64) -> bool {
    let at = ranges.partition_point(|range| range.end <= number);
    ranges.get(at).is_some_and(|range| range.start <= number)
}

impl Waiting {
    fn packet(&self, sent_below: u64) -> Outgoing<'_> {
        let packet_id = packet_id(self.number);
        match &self.delivery {
            Some(delivery) => delivery.packet(Some(packet_id), self.number < sent_below),
            None => Outgoing::Release { packet_id },
        }
    }
}

impl Delivery {
    fn packet(&self, packet_id: Option<u16>, duplicate: bool) -> Outgoing<'_> {
        Outgoing::Publish {
            message: &self.message,
            qos: self.qos,
            retain: self.retain,
            duplicate,
            packet_id,
            identifiers: &self.identifiers,
        }
    }
}
