//! The packet identifiers of a publisher's messages and their acknowledgements.

use wire::mqtt::{Ack, Packet, ProtocolVersion, QoS, encode};

use load::protocol::{Answer, AnswerStatus, Completion};

/// The packet identifiers of a publisher, in turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PacketIds {
    last: u16,
}

impl PacketIds {
    /// The next identifier; 0 is none.
    pub(crate) fn next(&mut self) -> u16 {
        self.last = if self.last == u16::MAX { 1 } else { self.last + 1 };
        self.last
    }
}

/// The last answer to a message: PUBACK, PUBCOMP, or a refusal in PUBREC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Acknowledgement<'a> {
    name: &'static str,
    ack: Ack<'a>,
}

/// What a packet of the server means for a message of this QoS. `Some(None)` is a step of QoS 2 that the function has
/// answered in `out`; `None` is a packet that acknowledges no such message.
#[inline]
pub(crate) fn acknowledgement<'a>(
    packet: &Packet<'a>,
    qos: QoS,
    version: ProtocolVersion,
    out: &mut Vec<u8>,
) -> Option<Option<Acknowledgement<'a>>> {
    let last = |name, ack: &Ack<'a>| Some(Some(Acknowledgement { name, ack: *ack }));
    match (qos, packet) {
        (QoS::AtLeastOnce, Packet::PubAck(ack)) => last("PUBACK", ack),
        (QoS::ExactlyOnce, Packet::PubRec(ack)) if ack.reason.is_error() => last("PUBREC", ack),
        (QoS::ExactlyOnce, Packet::PubRec(ack)) => {
            encode(&Packet::PubRel(Ack::success(ack.packet_id)), version, out)
                .expect("BUG: the identifier came in a packet, so it is not zero");
            Some(None)
        }
        (QoS::ExactlyOnce, Packet::PubComp(ack)) => last("PUBCOMP", ack),
        _ => None,
    }
}

impl Acknowledgement<'_> {
    /// The packet identifier of the message.
    pub(super) fn packet_id(&self) -> u16 {
        self.ack.packet_id
    }

    /// Reports the end of the message with the size of the answer. Returns whether the server took the message.
    pub(crate) fn report(&self, length: usize, done: &mut impl FnMut(Completion<'_>)) -> bool {
        let Self { name, ack } = self;
        let (answer, bytes) = (Answer::Key(ack.packet_id.into()), length as u32);
        let is_taken = !ack.reason.is_error();
        if is_taken {
            done(Completion { answer, status: AnswerStatus::Good, bytes });
        } else {
            let text = format!("{name} {}", ack.reason);
            done(Completion { answer, status: AnswerStatus::Failed(&text), bytes });
        }
        is_taken
    }
}
