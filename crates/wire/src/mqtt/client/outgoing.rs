//! Packets of the client that wait for an answer.

use std::collections::VecDeque;

use super::connection::ServerLimits;
use crate::mqtt::{Ack, Packet, PacketType, ProtocolVersion, QoS, ReasonCode, encode};

/// The flag of a PUBLISH that may have been sent before [MQTT-3.3.1-1].
const DUP: u8 = 0b1000;

/// Messages, in the order in which the client published them, and subscriptions.
#[derive(Debug)]
pub(super) struct Outgoing {
    entries: VecDeque<Entry>,
    last_packet_id: u16,
    /// Messages of QoS 1 and 2 among them.
    messages: usize,
    /// Messages that are sent and neither acknowledged nor complete: what the receive maximum bounds.
    in_flight: usize,
    /// Messages in state [`State::Waiting`].
    waiting: usize,
    /// Messages in state [`State::Settled`].
    settled: usize,
}

#[derive(Debug)]
struct Entry {
    packet_id: u16,
    state: State,
    /// The encoded PUBLISH; empty for subscriptions, and for messages that the server has.
    packet: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The PUBLISH was not sent on this connection.
    Waiting(QoS),
    /// It was sent.
    Published(QoS),
    /// PUBREC came and PUBREL was sent.
    Received,
    /// It needs no answer of the server any more, and the caller does not know it yet.
    Settled(ReasonCode),
    /// SUBSCRIBE was sent.
    Subscribing,
    /// UNSUBSCRIBE was sent.
    Unsubscribing,
}

/// The answers that end the wait of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    PubAck,
    PubRecRefused,
    PubComp,
    SubAck,
    UnsubAck,
}

impl Outgoing {
    pub(super) const fn new() -> Self {
        let entries = VecDeque::new();
        Self { entries, last_packet_id: 0, messages: 0, in_flight: 0, waiting: 0, settled: 0 }
    }

    /// Messages without a last answer.
    pub(super) const fn messages(&self) -> usize {
        self.messages
    }

    /// Packets that wait for an answer.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The next free packet identifier. There is one as long as fewer than 65,535 packets wait.
    pub(super) fn free_packet_id(&self) -> u16 {
        let mut id = self.last_packet_id;
        loop {
            id = id.checked_add(1).unwrap_or(1);
            if self.position(id).is_none() {
                return id;
            }
        }
    }

    /// Keeps a message until its last answer. [`Outgoing::send_waiting`] sends it.
    pub(super) fn push_message(&mut self, packet_id: u16, qos: QoS, packet: Vec<u8>) {
        self.messages += 1;
        self.waiting += 1;
        self.push(packet_id, State::Waiting(qos), packet);
    }

    pub(super) fn push_subscription(&mut self, packet_id: u16, packet_type: PacketType) {
        let is_new = packet_type == PacketType::Subscribe;
        let state = if is_new { State::Subscribing } else { State::Unsubscribing };
        self.push(packet_id, state, Vec::new());
    }

    fn push(&mut self, packet_id: u16, state: State, packet: Vec<u8>) {
        self.last_packet_id = packet_id;
        self.entries.push_back(Entry { packet_id, state, packet });
    }

    /// Sends waiting messages in their order, as many as the server allows.
    pub(super) fn send_waiting(&mut self, server: &ServerLimits, out: &mut Vec<u8>) {
        if self.waiting == 0 {
            return;
        }
        for entry in &mut self.entries {
            let State::Waiting(qos) = entry.state else { continue };
            if let Some(reason) = server.refusal(&entry.packet, qos) {
                entry.state = State::Settled(reason);
                self.settled += 1;
            } else if self.in_flight < usize::from(server.receive_maximum) {
                out.extend_from_slice(&entry.packet);
                entry.state = State::Published(qos);
                self.in_flight += 1;
            } else {
                return;
            }
            self.waiting -= 1;
        }
    }

    /// Forgets subscriptions without an answer: they end with their connection.
    pub(super) fn begin_connection(&mut self) {
        self.entries.retain(|entry| !matches!(entry.state, State::Subscribing | State::Unsubscribing));
        self.in_flight = 0;
    }

    /// Continues after CONNACK. If the server kept the session, messages are repeated with DUP and PUBREL again
    /// [MQTT-4.4.0-1]. Otherwise messages that it may not have are new ones, and those that it had are settled.
    pub(super) fn resume(&mut self, session_present: bool, version: ProtocolVersion, out: &mut Vec<u8>) {
        for entry in &mut self.entries {
            match entry.state {
                State::Published(qos) => {
                    entry.state = State::Waiting(qos);
                    entry.packet[0] =
                        if session_present { entry.packet[0] | DUP } else { entry.packet[0] & !DUP };
                    self.waiting += 1;
                }
                State::Waiting(_) if !session_present => entry.packet[0] &= !DUP,
                State::Received if session_present => {
                    release(entry.packet_id, version, out);
                    // MQTT5 4.9 would let the client send one more. A server may count differently.
                    self.in_flight += 1;
                }
                State::Received => {
                    entry.state = State::Settled(ReasonCode::SUCCESS);
                    self.settled += 1;
                }
                State::Waiting(_) | State::Settled(_) | State::Subscribing | State::Unsubscribing => {}
            }
        }
    }

    /// A message that needs no answer any more.
    pub(super) fn take_settled(&mut self) -> Option<(u16, ReasonCode)> {
        if self.settled == 0 {
            return None;
        }
        let settled = self.entries.iter().enumerate().find_map(|(at, entry)| match entry.state {
            State::Settled(reason) => Some((at, entry.packet_id, reason)),
            _ => None,
        });
        let (at, packet_id, reason) = settled?;
        self.settled -= 1;
        self.messages -= 1;
        self.entries.remove(at);
        Some((packet_id, reason))
    }

    /// Takes PUBREC of a message of QoS 2 and answers with PUBREL. Returns false if no message waits for it.
    pub(super) fn receive(&mut self, packet_id: u16, version: ProtocolVersion, out: &mut Vec<u8>) -> bool {
        let Some(at) = self.position(packet_id) else { return false };
        let entry = &mut self.entries[at];
        if !matches!(entry.state, State::Published(QoS::ExactlyOnce) | State::Received) {
            return false;
        }
        entry.state = State::Received;
        // The PUBLISH is never sent again [MQTT-4.3.3-6].
        entry.packet = Vec::new();
        release(packet_id, version, out);
        true
    }

    /// Takes the last answer of an entry. Returns false if nothing waits for it.
    pub(super) fn complete(&mut self, packet_id: u16, answer: Answer) -> bool {
        let Some(at) = self.position(packet_id) else { return false };
        let waits = match answer {
            Answer::PubAck => State::Published(QoS::AtLeastOnce),
            Answer::PubRecRefused => State::Published(QoS::ExactlyOnce),
            Answer::PubComp => State::Received,
            Answer::SubAck => State::Subscribing,
            Answer::UnsubAck => State::Unsubscribing,
        };
        if self.entries[at].state != waits {
            return false;
        }
        self.entries.remove(at);
        if !matches!(answer, Answer::SubAck | Answer::UnsubAck) {
            self.messages -= 1;
            self.in_flight -= 1;
        }
        true
    }

    /// Answers come nearly in order, so the search ends early.
    fn position(&self, packet_id: u16) -> Option<usize> {
        self.entries.iter().position(|entry| entry.packet_id == packet_id)
    }
}

fn release(packet_id: u16, version: ProtocolVersion, out: &mut Vec<u8>) {
    encode(&Packet::PubRel(Ack::success(packet_id)), version, out)
        .expect("BUG: packet identifiers are not zero");
}
