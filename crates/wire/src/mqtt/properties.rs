//! The properties of a packet, as they arrive and as they leave [MQTT5 2.2.2].

use super::error::{DecodeError, EncodeError};
use super::packet_type::PacketType;
use super::property::{Property, PropertyId, scope_of};
use super::reader::Reader;
use super::{limits, writer};

type Result<T> = std::result::Result<T, DecodeError>;

/// The properties of one packet. `decode` checks them once; each getter parses them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Properties<'a> {
    raw: &'a [u8],
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Self = Self { raw: &[] };

    pub(super) fn read(reader: &mut Reader<'a>, scope: u16) -> Result<Self> {
        let len = reader.variable_int()?;
        let base = reader.offset();
        let raw = reader.take(len as usize)?;
        if !raw.is_empty() {
            check(Reader::new(raw, base), scope)?;
        }
        Ok(Self { raw })
    }

    /// Writes the length and the properties, if `scope` allows them.
    pub(super) fn write(&self, scope: u16, out: &mut Vec<u8>) -> std::result::Result<(), EncodeError> {
        if self.raw.len() > limits::REMAINING_LENGTH_MAX {
            return Err(EncodeError::PacketTooLong { bytes: self.raw.len() });
        }
        if !self.raw.is_empty() {
            check(Reader::new(self.raw, 0), scope)?;
        }
        writer::variable_int(self.raw.len() as u32, out);
        out.extend_from_slice(self.raw);
        Ok(())
    }

    /// How many bytes [`Properties::write`] appends.
    pub(super) const fn written_bytes(&self) -> usize {
        writer::variable_int_len(self.raw.len()) + self.raw.len()
    }

    /// Bytes that [`super::PropertiesBuilder`] wrote.
    pub(super) const fn built(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    pub(super) fn check_publish(raw: &[u8]) -> Result<()> {
        check(Reader::new(raw, 0), scope_of(PacketType::Publish))
    }

    /// The properties in the layout of a packet, without their length.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether the packet has no properties.
    pub const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// All properties in their order.
    pub fn iter(&self) -> impl Iterator<Item = Property<'a>> + use<'a> {
        let mut reader = Reader::new(self.raw, 0);
        std::iter::from_fn(move || {
            if reader.is_at_end() {
                return None;
            }
            Some(Property::read(&mut reader).expect("BUG: properties are checked before they are kept"))
        })
    }

    /// The first property with this identifier.
    pub fn get(&self, id: PropertyId) -> Option<Property<'a>> {
        self.iter().find(|property| property.id() == id)
    }

    /// The value of a numeric property.
    pub fn number(&self, id: PropertyId) -> Option<u32> {
        match self.get(id)? {
            Property::Byte(_, value) => Some(u32::from(value)),
            Property::TwoBytes(_, value) => Some(u32::from(value)),
            Property::FourBytes(_, value) | Property::VariableInt(_, value) => Some(value),
            Property::Text(..) | Property::Binary(..) | Property::Pair(..) => None,
        }
    }

    /// The value of a text property.
    pub fn text(&self, id: PropertyId) -> Option<&'a str> {
        match self.get(id)? {
            Property::Text(_, text) => Some(text),
            _ => None,
        }
    }

    /// The value of a binary property.
    pub fn binary(&self, id: PropertyId) -> Option<&'a [u8]> {
        match self.get(id)? {
            Property::Binary(_, bytes) => Some(bytes),
            _ => None,
        }
    }
}

fn check(mut reader: Reader<'_>, scope: u16) -> Result<()> {
    // A bit per identifier; the largest is 0x2A.
    let mut seen = 0_u64;
    while !reader.is_at_end() {
        let offset = reader.offset();
        let property = Property::read(&mut reader)?;
        let id = property.id();
        if id.allowed() & scope == 0 {
            return Err(DecodeError::protocol(
                "the property does not belong into this packet [MQTT5 2.2.2.2]",
            )
            .at(offset));
        }
        let mask = 1_u64 << id as u8;
        if seen & mask != 0 && !id.may_repeat(scope) {
            return Err(DecodeError::protocol("the property appears twice [MQTT5 2.2.2.2]").at(offset));
        }
        seen |= mask;
        property.check_value().map_err(|error| error.at(offset))?;
    }
    let has = |id: PropertyId| seen & (1 << id as u8) != 0;
    if has(PropertyId::AuthenticationData) && !has(PropertyId::AuthenticationMethod) {
        return Err(DecodeError::protocol("Authentication Data without a method [MQTT5 3.1.2.11.10]")
            .at(reader.offset()));
    }
    Ok(())
}
