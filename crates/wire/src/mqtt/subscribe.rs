//! SUBSCRIBE, SUBACK, UNSUBSCRIBE and UNSUBACK [MQTT5 3.8 to 3.11].

use super::error::{DecodeError, EncodeError};
use super::packet_type::PacketType;
use super::properties::Properties;
use super::property::scope_of;
use super::qos::QoS;
use super::reader::Reader;
use super::topic::is_valid_filter_of;
use super::{ReasonCode, writer};

/// SUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// The identifier that SUBACK repeats.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    filters: &'a [u8],
}

/// One filter of a SUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter<'a> {
    /// The topic filter.
    pub topic: &'a str,
    /// QoS in the lowest two bits; in MQTT 5 also no-local, retain-as-published and retain-handling [MQTT5 3.8.3.1].
    pub options: u8,
}

impl Filter<'_> {
    /// The highest QoS the subscriber wants.
    pub const fn qos(&self) -> QoS {
        match self.options & 0b11 {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            // The decoder and the encoder refuse the value 3.
            _ => QoS::ExactlyOnce,
        }
    }

    /// No-local: the server does not send the subscriber its own messages.
    pub const fn no_local(&self) -> bool {
        self.options & 0b100 != 0
    }

    /// Retain-as-published: messages keep the retain flag of their publisher.
    pub const fn retain_as_published(&self) -> bool {
        self.options & 0b1000 != 0
    }

    /// Retain handling: the server sends retained messages at every subscription (0), at a new one (1) or never (2).
    pub const fn retain_handling(&self) -> u8 {
        self.options >> 4 & 0b11
    }
}

/// UNSUBSCRIBE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// The identifier that UNSUBACK repeats.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    filters: &'a [u8],
}

/// SUBACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubAck<'a> {
    /// Identifier of the SUBSCRIBE.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// A code per filter, in their order.
    pub codes: &'a [u8],
}

/// UNSUBACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsubAck<'a> {
    /// Identifier of the UNSUBSCRIBE.
    pub packet_id: u16,
    /// MQTT 5 only.
    pub properties: Properties<'a>,
    /// MQTT 5 only: a code per filter, in their order.
    pub codes: &'a [u8],
}

impl<'a> Subscribe<'a> {
    /// A SUBSCRIBE with the filters that [`Subscribe::layout`] wrote.
    pub const fn new(packet_id: u16, properties: Properties<'a>, layout: &'a [u8]) -> Self {
        Self { packet_id, properties, filters: layout }
    }

    /// Writes filters in the layout of the packet. `encode` checks them.
    pub fn layout(filters: &[Filter<'_>]) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        for filter in filters {
            writer::string("a topic filter", filter.topic, &mut out)?;
            out.push(filter.options);
        }
        Ok(out)
    }

    /// The filters in their order.
    pub fn filters(&self) -> impl Iterator<Item = Filter<'a>> + use<'a> {
        let mut reader = Reader::new(self.filters, 0);
        std::iter::from_fn(move || {
            let topic = if reader.is_at_end() { None } else { reader.string().ok() }?;
            reader.u8().ok().map(|options| Filter { topic, options })
        })
    }
}

impl<'a> Unsubscribe<'a> {
    /// An UNSUBSCRIBE with the filters that [`Unsubscribe::layout`] wrote.
    pub const fn new(packet_id: u16, properties: Properties<'a>, layout: &'a [u8]) -> Self {
        Self { packet_id, properties, filters: layout }
    }

    /// Writes filters in the layout of the packet. `encode` checks them.
    pub fn layout(filters: &[&str]) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        for filter in filters {
            writer::string("a topic filter", filter, &mut out)?;
        }
        Ok(out)
    }

    /// The filters in their order.
    pub fn filters(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut reader = Reader::new(self.filters, 0);
        std::iter::from_fn(move || if reader.is_at_end() { None } else { reader.string().ok() })
    }
}

pub(super) fn decode_subscribe<'a>(body: &mut Reader<'a>, v5: bool) -> Result<Subscribe<'a>, DecodeError> {
    let packet_id = body.packet_id()?;
    let properties =
        if v5 { Properties::read(body, scope_of(PacketType::Subscribe))? } else { Properties::NONE };
    check_subscriptions(body.clone(), v5)?;
    Ok(Subscribe { packet_id, properties, filters: body.rest() })
}

fn check_subscriptions(mut list: Reader<'_>, v5: bool) -> Result<(), DecodeError> {
    if list.is_at_end() {
        return Err(DecodeError::protocol("a SUBSCRIBE without filters [MQTT-3.8.3-2]").at(list.offset()));
    }
    while !list.is_at_end() {
        let topic = read_filter(&mut list, v5)?;
        let offset = list.offset();
        let options = list.u8()?;
        check_options(options, topic, v5).map_err(|error| error.at(offset))?;
    }
    Ok(())
}

fn check_options(options: u8, topic: &str, v5: bool) -> Result<(), DecodeError> {
    let reserved = if v5 { 0b1100_0000 } else { 0b1111_1100 };
    if options & reserved != 0 {
        let cause = "reserved subscription options are set [MQTT-3.8.3-5], [MQTT-3-8.3-4 of 3.1.1]";
        return Err(DecodeError::malformed(cause));
    }
    if options & 0b11 == 3 {
        let cause = "a filter's QoS is 3 [MQTT5 3.8.3.1], [MQTT-3-8.3-4 of 3.1.1]";
        return Err(if v5 { DecodeError::protocol(cause) } else { DecodeError::malformed(cause) });
    }
    if options & 0b0011_0000 == 0b0011_0000 {
        return Err(DecodeError::protocol("retain handling is 3 [MQTT5 3.8.3.1]"));
    }
    if v5 && options & 0b100 != 0 && topic.starts_with("$share/") {
        return Err(DecodeError::protocol("no-local on a shared subscription [MQTT-3.8.3-4]"));
    }
    Ok(())
}

fn read_filter<'a>(reader: &mut Reader<'a>, v5: bool) -> Result<&'a str, DecodeError> {
    let offset = reader.offset();
    let filter = reader.string()?;
    if is_valid_filter_of(filter, v5) {
        return Ok(filter);
    }
    let cause = "a topic filter is empty, has a misplaced wildcard or an incomplete share \
                 [MQTT-4.7.1-1], [MQTT-4.7.1-2], [MQTT-4.7.3-1], [MQTT-4.8.2-1]";
    Err(DecodeError::new(ReasonCode::TOPIC_FILTER_INVALID, cause).at(offset))
}

pub(super) fn decode_unsubscribe<'a>(
    body: &mut Reader<'a>,
    v5: bool,
) -> Result<Unsubscribe<'a>, DecodeError> {
    let packet_id = body.packet_id()?;
    let properties =
        if v5 { Properties::read(body, scope_of(PacketType::Unsubscribe))? } else { Properties::NONE };
    check_filters(body.clone(), v5)?;
    Ok(Unsubscribe { packet_id, properties, filters: body.rest() })
}

fn check_filters(mut list: Reader<'_>, v5: bool) -> Result<(), DecodeError> {
    if list.is_at_end() {
        let cause = "an UNSUBSCRIBE without filters [MQTT-3.10.3-2]";
        return Err(DecodeError::protocol(cause).at(list.offset()));
    }
    while !list.is_at_end() {
        read_filter(&mut list, v5)?;
    }
    Ok(())
}

pub(super) fn decode_suback<'a>(body: &mut Reader<'a>, v5: bool) -> Result<SubAck<'a>, DecodeError> {
    let packet_id = body.packet_id()?;
    let properties =
        if v5 { Properties::read(body, scope_of(PacketType::SubAck))? } else { Properties::NONE };
    let offset = body.offset();
    let codes = body.rest();
    check_codes(PacketType::SubAck, codes, v5).map_err(|error| error.at(offset))?;
    Ok(SubAck { packet_id, properties, codes })
}

pub(super) fn decode_unsuback<'a>(body: &mut Reader<'a>, v5: bool) -> Result<UnsubAck<'a>, DecodeError> {
    let packet_id = body.packet_id()?;
    if !v5 {
        return Ok(UnsubAck { packet_id, properties: Properties::NONE, codes: &[] });
    }
    let properties = Properties::read(body, scope_of(PacketType::UnsubAck))?;
    let offset = body.offset();
    let codes = body.rest();
    check_codes(PacketType::UnsubAck, codes, v5).map_err(|error| error.at(offset))?;
    Ok(UnsubAck { packet_id, properties, codes })
}

fn check_codes(packet_type: PacketType, codes: &[u8], v5: bool) -> Result<(), DecodeError> {
    if codes.is_empty() {
        let cause = "an ack of subscriptions without codes [MQTT-3.8.4-6], [MQTT-3.11.3-1]";
        return Err(DecodeError::protocol(cause));
    }
    let known = |code: &u8| match v5 {
        true => ReasonCode(*code).belongs_to(packet_type),
        false => matches!(code, 0..=2 | 0x80),
    };
    if codes.iter().all(known) {
        return Ok(());
    }
    Err(DecodeError::protocol("the code does not belong to this ack [MQTT-3.9.3-2], [MQTT-3.11.3-2]"))
}

pub(super) fn encode_subscribe(
    packet: &Subscribe<'_>,
    v5: bool,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    check_subscriptions(Reader::new(packet.filters, 0), v5)?;
    encode_list(PacketType::Subscribe, packet.packet_id, packet.properties, packet.filters, v5, out)
}

pub(super) fn encode_unsubscribe(
    packet: &Unsubscribe<'_>,
    v5: bool,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    check_filters(Reader::new(packet.filters, 0), v5)?;
    encode_list(PacketType::Unsubscribe, packet.packet_id, packet.properties, packet.filters, v5, out)
}

pub(super) fn encode_suback(packet: &SubAck<'_>, v5: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_codes(PacketType::SubAck, packet.codes, v5)?;
    encode_list(PacketType::SubAck, packet.packet_id, packet.properties, packet.codes, v5, out)
}

pub(super) fn encode_unsuback(packet: &UnsubAck<'_>, v5: bool, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if v5 {
        check_codes(PacketType::UnsubAck, packet.codes, v5)?;
    }
    let codes = if v5 { packet.codes } else { &[] };
    encode_list(PacketType::UnsubAck, packet.packet_id, packet.properties, codes, v5, out)
}

fn encode_list(
    packet_type: PacketType,
    packet_id: u16,
    properties: Properties<'_>,
    list: &[u8],
    v5: bool,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    writer::packet(packet_type.first_byte(), out, |out| {
        writer::packet_id(packet_id, out)?;
        if v5 {
            properties.write(scope_of(packet_type), out)?;
        }
        out.extend_from_slice(list);
        Ok(())
    })
}
