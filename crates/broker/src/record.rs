//! The records of the broker in the key-value engine. `docs/format/broker.md` describes them.
//!
//! All integers are big-endian, so that keys sort by number.

use uuid::Uuid;

use super::message::Content;
use super::subscription::{Quality, SubscriptionOptions};

/// A record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record of the broker cannot be read: {0}")]
pub struct RecordError(pub(super) &'static str);

/// A session that outlives its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionRecord {
    pub(super) tenant: Uuid,
    pub(super) device: Uuid,
    pub(super) client_id: Box<str>,
    /// Seconds that it outlives a connection.
    pub(super) expiry_s: u32,
    /// When its last connection ended, in milliseconds since the epoch; 0 while it has one.
    pub(super) left_at_ms: i64,
}

/// An entry of the queue of a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueueRecord<'a> {
    /// A message that the client has not acknowledged.
    Message(MessageRecord<'a>),
    /// A message whose content is a record of its own, because several queues have it.
    Reference(Reference<'a>),
    /// A message of QoS 2 that the client has received. PUBREL is due.
    Released,
}

/// A message in a queue without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    pub(super) qos: Quality,
    pub(super) retain: bool,
    pub(super) identifiers: Vec<u32>,
    /// See [`MessageRecord::share`].
    pub(super) share: Option<&'a str>,
    /// Key of the content.
    pub(super) shared: u64,
}

/// A message with what its receiver or the retained copy needs.
#[derive(Debug)]
pub(super) struct MessageRecord<'a> {
    pub(super) qos: Quality,
    pub(super) retain: bool,
    pub(super) identifiers: Vec<u32>,
    /// The whole filter of the shared subscription that selected the message.
    pub(super) share: Option<&'a str>,
    pub(super) content: Content<'a>,
}

const MESSAGE: u8 = 1;
const RELEASED: u8 = 2;
const REFERENCE: u8 = 3;
const MESSAGE_OF_GROUP: u8 = 4;
const REFERENCE_OF_GROUP: u8 = 5;
const SESSION: u8 = 1;
const NO_LOCAL: u8 = 0b100;
const RETAIN_AS_PUBLISHED: u8 = 0b1000;

/// The key of an entry of a queue.
pub(super) fn queue_key(session: u64, number: u64) -> Vec<u8> {
    [session.to_be_bytes(), number.to_be_bytes()].concat()
}

/// The key of something with a number: a session, or a content.
pub(super) fn number_key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// The number of such a key.
pub(super) fn read_number_key(key: &[u8]) -> Result<u64, RecordError> {
    Reader(key).u64()
}

/// Session and number of a key of a queue.
pub(super) fn read_queue_key(key: &[u8]) -> Result<(u64, u64), RecordError> {
    let mut reader = Reader(key);
    Ok((reader.u64()?, reader.u64()?))
}

/// The key of a subscription.
pub(super) fn subscription_key(session: u64, filter: &str) -> Vec<u8> {
    [&session.to_be_bytes()[..], filter.as_bytes()].concat()
}

/// Session and filter of the key of a subscription.
pub(super) fn read_subscription_key(key: &[u8]) -> Result<(u64, &str), RecordError> {
    let mut reader = Reader(key);
    Ok((reader.u64()?, text(reader.0)?))
}

/// The key of a retained message.
pub(super) fn retained_key(tenant: Uuid, topic: &str) -> Vec<u8> {
    [tenant.as_bytes(), topic.as_bytes()].concat()
}

/// Tenant and topic of the key of a retained message.
pub(super) fn read_retained_key(key: &[u8]) -> Result<(Uuid, &str), RecordError> {
    let mut reader = Reader(key);
    Ok((reader.uuid()?, text(reader.0)?))
}

impl SubscriptionOptions {
    pub(super) fn to_record(self) -> Vec<u8> {
        let flags = self.qos as u8
            | if self.no_local { NO_LOCAL } else { 0 }
            | if self.retain_as_published { RETAIN_AS_PUBLISHED } else { 0 };
        let [a, b, c, d] = self.identifier.map_or(0, u32::from).to_be_bytes();
        vec![flags, a, b, c, d]
    }

    pub(super) fn from_record(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut reader = Reader(bytes);
        let flags = reader.u8()?;
        Ok(Self {
            qos: Quality::from_number(flags & 0b11).ok_or(RecordError("a subscription has the QoS 3"))?,
            no_local: flags & NO_LOCAL != 0,
            retain_as_published: flags & RETAIN_AS_PUBLISHED != 0,
            identifier: std::num::NonZeroU32::new(reader.u32()?),
        })
    }
}

impl SessionRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![SESSION];
        out.extend_from_slice(self.tenant.as_bytes());
        out.extend_from_slice(self.device.as_bytes());
        out.extend_from_slice(&self.expiry_s.to_be_bytes());
        out.extend_from_slice(&self.left_at_ms.to_be_bytes());
        out.extend_from_slice(self.client_id.as_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut reader = Reader(bytes);
        if reader.u8()? != SESSION {
            return Err(RecordError("a session of an unknown version"));
        }
        Ok(Self {
            tenant: reader.uuid()?,
            device: reader.uuid()?,
            expiry_s: reader.u32()?,
            left_at_ms: reader.i64()?,
            client_id: text(reader.0)?.into(),
        })
    }
}

impl MessageRecord<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let Content { topic, payload, properties, expires_at_ms } = self.content;
        let mut out = Vec::with_capacity(32 + topic.len() + payload.len() + properties.len());
        let kind = if self.share.is_some() { MESSAGE_OF_GROUP } else { MESSAGE };
        write_head(kind, self.qos, self.retain, &self.identifiers, &mut out);
        self.share.iter().for_each(|share| write_part(share.as_bytes(), &mut out));
        out.extend_from_slice(&expires_at_ms.unwrap_or(0).to_be_bytes());
        write_part(topic.as_bytes(), &mut out);
        write_part(properties, &mut out);
        out.extend_from_slice(payload);
        out
    }
}

impl Reference<'_> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        let kind = if self.share.is_some() { REFERENCE_OF_GROUP } else { REFERENCE };
        write_head(kind, self.qos, self.retain, &self.identifiers, &mut out);
        self.share.iter().for_each(|share| write_part(share.as_bytes(), &mut out));
        out.extend_from_slice(&self.shared.to_be_bytes());
        out
    }
}

fn write_head(kind: u8, qos: Quality, retain: bool, identifiers: &[u32], out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind, qos as u8, u8::from(retain)]);
    out.extend_from_slice(&(identifiers.len() as u32).to_be_bytes());
    identifiers.iter().for_each(|id| out.extend_from_slice(&id.to_be_bytes()));
}

fn write_part(part: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(part.len() as u32).to_be_bytes());
    out.extend_from_slice(part);
}

impl<'a> QueueRecord<'a> {
    /// The entry for a received message of QoS 2.
    pub(super) const RELEASED: &'static [u8] = &[RELEASED];

    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let mut reader = Reader(bytes);
        let kind = reader.u8()?;
        if kind == RELEASED {
            return Ok(Self::Released);
        }
        let qos = Quality::from_number(reader.u8()?).ok_or(RecordError("a message has the QoS 3"))?;
        let retain = reader.u8()? != 0;
        let count = reader.u32()?;
        let identifiers = (0..count).map(|_| reader.u32()).collect::<Result<_, _>>()?;
        let share = match kind {
            MESSAGE | REFERENCE => None,
            MESSAGE_OF_GROUP | REFERENCE_OF_GROUP => Some(text(reader.part()?)?),
            _ => return Err(RecordError("a queued message of an unknown kind")),
        };
        if matches!(kind, REFERENCE | REFERENCE_OF_GROUP) {
            let shared = reader.u64()?;
            return Ok(Self::Reference(Reference { qos, retain, identifiers, share, shared }));
        }
        let expires_at_ms = Some(reader.i64()?).filter(|expires_at_ms| *expires_at_ms != 0);
        let topic = text(reader.part()?)?;
        let properties = reader.part()?;
        let content = Content { topic, payload: reader.0, properties, expires_at_ms };
        Ok(Self::Message(MessageRecord { qos, retain, identifiers, share, content }))
    }
}

impl PartialEq for MessageRecord<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.encode() == other.encode()
    }
}

impl Eq for MessageRecord<'_> {}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(RecordError("it is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        Ok(self.take(N)?.try_into().expect("BUG: N bytes were taken"))
    }

    fn u8(&mut self) -> Result<u8, RecordError> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, RecordError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, RecordError> {
        self.array().map(u64::from_be_bytes)
    }

    fn i64(&mut self) -> Result<i64, RecordError> {
        self.array().map(i64::from_be_bytes)
    }

    fn uuid(&mut self) -> Result<Uuid, RecordError> {
        self.array().map(Uuid::from_bytes)
    }

    fn part(&mut self) -> Result<&'a [u8], RecordError> {
        let length = self.u32()?;
        self.take(length as usize)
    }
}

fn text(bytes: &[u8]) -> Result<&str, RecordError> {
    std::str::from_utf8(bytes).map_err(|_| RecordError("a text is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(payload: &[u8]) -> MessageRecord<'_> {
        let content = Content { topic: "a/ü", payload, properties: &[1, 0], expires_at_ms: Some(7) };
        let (qos, identifiers) = (Quality::ExactlyOnce, vec![3, 900]);
        MessageRecord { qos, retain: true, identifiers, share: None, content }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        assert_eq!(QueueRecord::decode(QueueRecord::RELEASED), Ok(QueueRecord::Released));
        for share in [None, Some("$share/g/a/+")] {
            let message = MessageRecord { share, ..message(b"payload") };
            let encoded = message.encode();
            assert_eq!(QueueRecord::decode(&encoded), Ok(QueueRecord::Message(message)));
            let (qos, identifiers) = (Quality::AtLeastOnce, vec![1]);
            let reference = Reference { qos, retain: false, identifiers, share, shared: u64::MAX };
            let encoded = reference.encode();
            assert_eq!(QueueRecord::decode(&encoded), Ok(QueueRecord::Reference(reference)));
        }
        let session = SessionRecord {
            tenant: Uuid::from_u128(1),
            device: Uuid::from_u128(2),
            client_id: "c".into(),
            expiry_s: 60,
            left_at_ms: -5,
        };
        assert_eq!(SessionRecord::decode(&session.encode()), Ok(session));
        let options = SubscriptionOptions {
            qos: Quality::AtLeastOnce,
            no_local: true,
            retain_as_published: false,
            identifier: std::num::NonZeroU32::new(268_435_455),
        };
        assert_eq!(SubscriptionOptions::from_record(&options.to_record()), Ok(options));
        assert_eq!(read_queue_key(&queue_key(1, u64::MAX)), Ok((1, u64::MAX)));
        assert_eq!(read_subscription_key(&subscription_key(9, "a/+")), Ok((9, "a/+")));
        assert_eq!(read_retained_key(&retained_key(Uuid::max(), "t")), Ok((Uuid::max(), "t")));
    }

    #[test]
    fn a_cut_record_is_an_error() {
        for share in [None, Some("$share/g/a")] {
            let encoded = MessageRecord { share, ..message(b"") }.encode();
            for end in 0..encoded.len() {
                assert!(QueueRecord::decode(&encoded[..end]).is_err(), "{end}");
            }
        }
        assert!(QueueRecord::decode(&[9]).is_err());
        assert!(SessionRecord::decode(&[2; 60]).is_err());
    }
}
