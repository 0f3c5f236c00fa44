//! Messages of the server that are not complete.

use std::collections::VecDeque;

use super::error::{Fault, SendError};
use crate::mqtt::{Ack, Packet, Properties, ProtocolVersion, QoS, ReasonCode, encode};

/// Messages of QoS 1 without PUBACK and of QoS 2 without PUBREL.
#[derive(Debug)]
pub(super) struct Incoming {
    messages: VecDeque<(u16, State)>,
    /// Messages of this connection without PUBACK or PUBCOMP.
    in_flight: usize,
    /// The largest number of them: what CONNECT announced.
    receive_maximum: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The caller has it and did not acknowledge it.
    Delivered(QoS),
    /// PUBREC was sent.
    Received,
}

impl Incoming {
    pub(super) const fn new() -> Self {
        Self { messages: VecDeque::new(), in_flight: 0, receive_maximum: u16::MAX }
    }

    /// Begins a connection. The server sends messages of QoS 1 again.
    pub(super) fn begin_connection(&mut self, receive_maximum: u16) {
        self.messages.retain(|(_, state)| *state != State::Delivered(QoS::AtLeastOnce));
        (self.in_flight, self.receive_maximum) = (0, receive_maximum);
    }

    /// The server has no session: it begins again with its identifiers.
    pub(super) fn forget(&mut self) {
        self.messages.clear();
    }

    /// Takes a PUBLISH of QoS 1 or 2. Returns whether it is new. A message of QoS 2 that was acknowledged gets its PUBREC
    /// again.
    pub(super) fn take(
        &mut self,
        packet_id: u16,
        qos: QoS,
        version: ProtocolVersion,
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        match self.state(packet_id).copied() {
            None if self.in_flight >= usize::from(self.receive_maximum) => {
                Err(Fault::ReceiveMaximum(self.receive_maximum))
            }
            None => {
                self.messages.push_back((packet_id, State::Delivered(qos)));
                self.in_flight += 1;
                Ok(true)
            }
            Some(State::Delivered(QoS::ExactlyOnce)) if qos == QoS::ExactlyOnce => Ok(false),
            Some(State::Received) if qos == QoS::ExactlyOnce => {
                answer(&Packet::PubRec(Ack::success(packet_id)), version, out);
                Ok(false)
            }
            Some(_) => Err(Fault::Order("the packet identifier is in use [MQTT-2.2.1-4]")),
        }
    }

    /// Sends PUBACK or PUBREC.
    pub(super) fn acknowledge(
        &mut self,
        packet_id: u16,
        reason: ReasonCode,
        version: ProtocolVersion,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let Some(State::Delivered(qos)) = self.state(packet_id).copied() else {
            return Err(SendError::NothingToAcknowledge(packet_id));
        };
        let ack = Ack { packet_id, reason, properties: Properties::NONE };
        if qos == QoS::AtLeastOnce {
            encode(&Packet::PubAck(ack), version, out)?;
        } else {
            encode(&Packet::PubRec(ack), version, out)?;
        }
        if qos == QoS::ExactlyOnce && !reason.is_error() {
            *self.state(packet_id).expect("BUG: it was there") = State::Received;
        } else {
            self.remove(packet_id);
        }
        Ok(())
    }

    /// Takes PUBREL and answers with PUBCOMP.
    pub(super) fn release(&mut self, packet_id: u16, version: ProtocolVersion, out: &mut Vec<u8>) {
        let is_known = self.state(packet_id).copied() == Some(State::Received);
        if is_known {
            self.remove(packet_id);
        }
        let reason = if is_known { ReasonCode::SUCCESS } else { ReasonCode::PACKET_IDENTIFIER_NOT_FOUND };
        answer(&Packet::PubComp(Ack { packet_id, reason, properties: Properties::NONE }), version, out);
    }

    fn state(&mut self, packet_id: u16) -> Option<&mut State> {
        self.messages.iter_mut().find(|(id, _)| *id == packet_id).map(|(_, state)| state)
    }

    fn remove(&mut self, packet_id: u16) {
        self.messages.retain(|(id, _)| *id != packet_id);
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

fn answer(packet: &Packet<'_>, version: ProtocolVersion, out: &mut Vec<u8>) {
    encode(packet, version, out).expect("BUG: the identifier came in a packet, so it is not zero");
}
