//! The surroundings in which a session handles a packet.

use std::net::SocketAddr;
use std::sync::Arc;

use hub::broker::{Acknowledged, Publication};
use hub::wake::Wake;
use hub::{ByClass, Durability, Hub};
use model::Timestamp;
use rustls::pki_types::CertificateDer;

use super::super::clients::{Clients, ConnectionRef};
use super::super::deferred::{Deferred, DeferredQueue};
use super::super::ingest_batch::{IngestBatch, PayloadRef};
use super::super::options::MqttOptions;
use super::super::provisioner::Provisioner;
use crate::acceptor::Gate;
use crate::door::LimitExceeded;

/// The surroundings of a session while it handles a packet.
pub(crate) struct Context<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) options: &'a MqttOptions,
    pub(crate) clients: &'a Clients,
    /// Gives devices their credentials.
    pub(crate) provisioner: &'a Arc<Provisioner>,
    /// The limit of messages.
    pub(crate) gate: &'a Gate,
    /// The limit that the connection exceeds; its CONNECT is refused.
    pub(crate) exceeded: Option<LimitExceeded>,
    /// The connection of the session.
    pub(crate) connection: ConnectionRef,
    /// Address of the peer.
    pub(crate) peer: SocketAddr,
    /// The client's certificates, its own first. Empty after CONNECT, without TLS, and if the client sent none.
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    /// The system clock when the worker read the bytes.
    pub(crate) now: Timestamp,
    /// Receipt time for the first row of the message, if it was assigned earlier.
    pub(crate) received: Option<Timestamp>,
    /// Seconds since the door was opened.
    pub(crate) now_s: u32,
    /// Where the packet ends in the buffer of the worker; `None` if it is not there.
    pub(crate) packet_end: Option<usize>,
    /// Whether the session may accept messages. It may not while the store has no room.
    pub(crate) takes_messages: bool,
    /// Output to send at once.
    pub(crate) out: &'a mut Vec<u8>,
    /// The batches of the worker, by durability class.
    pub(crate) batches: &'a mut ByClass<IngestBatch>,
    /// Messages for subscribers, which the worker publishes at the end of the pass.
    pub(crate) publications: &'a mut Vec<Publication>,
    /// Deletions of acknowledged messages.
    pub(crate) acknowledged: &'a mut Acknowledged,
    /// What the key-value engine must make durable before the acks of this pass leave.
    pub(crate) kv_sequence: &'a mut u64,
    /// Answers that wait for the key-value engine.
    pub(crate) deferred: &'a mut DeferredQueue,
    /// Whether messages may wait for the client now.
    pub(crate) deliver: &'a mut bool,
    /// Makes what wakes the connection.
    pub(crate) wake: &'a dyn Fn() -> Arc<dyn Wake>,
    /// A connection to close because this one took over its client identifier.
    pub(crate) taken_over: &'a mut Option<ConnectionRef>,
}

impl Context<'_> {
    /// Where the payload of this packet is, with which it ends.
    pub(crate) fn payload_ref(&mut self, payload: &[u8], class: Durability) -> PayloadRef {
        match self.packet_end {
            Some(end) => PayloadRef::Input(end - payload.len()..end),
            None => self.batches[class].copied(payload),
        }
    }

    /// Milliseconds since the epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now.micros() / 1_000
    }

    /// Sends an answer when the key-value engine has made `sequence` durable; at once if there is none.
    pub(crate) fn answer_when_durable(&mut self, sequence: Option<u64>, bytes: Vec<u8>) {
        match sequence {
            None => self.out.extend_from_slice(&bytes),
            Some(sequence) => {
                let connection = self.connection.key;
                self.deferred.push_back(Deferred { sequence, connection, bytes });
            }
        }
    }
}
