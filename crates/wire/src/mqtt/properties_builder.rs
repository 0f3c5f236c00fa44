//! Properties to send.

use super::error::{DecodeError, EncodeError};
use super::properties::Properties;
use super::property::Property;
use super::{limits, writer};

/// Properties to send.
#[derive(Debug, Clone, Default)]
pub struct PropertiesBuilder {
    raw: Vec<u8>,
}

impl PropertiesBuilder {
    /// No properties yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins with properties that [`Properties::as_bytes`] gave.
    ///
    /// # Errors
    /// The bytes are not properties that a PUBLISH may have.
    pub fn of_publish(bytes: &[u8]) -> Result<Self, DecodeError> {
        Properties::check_publish(bytes)?;
        Ok(Self { raw: bytes.to_vec() })
    }

    /// Adds a property. `encode` checks that the packet allows it and that it is there once.
    ///
    /// # Errors
    /// The value has the wrong type or range for its identifier, or is too long.
    pub fn push(&mut self, property: Property<'_>) -> Result<&mut Self, EncodeError> {
        if !property.is_well_typed() {
            return Err(EncodeError::Invalid {
                cause: "the property has a value of another type [MQTT5 2.2.2.2]",
            });
        }
        property.check_value()?;
        let start = self.raw.len();
        self.raw.push(property.id() as u8);
        let written = self.push_value(property);
        if written.is_err() {
            self.raw.truncate(start);
        }
        written.map(|()| self)
    }

    fn push_value(&mut self, property: Property<'_>) -> Result<(), EncodeError> {
        let out = &mut self.raw;
        match property {
            Property::Byte(_, value) => out.push(value),
            Property::TwoBytes(_, value) => out.extend_from_slice(&value.to_be_bytes()),
            Property::FourBytes(_, value) => out.extend_from_slice(&value.to_be_bytes()),
            Property::VariableInt(_, value) if value as usize > limits::REMAINING_LENGTH_MAX => {
                return Err(EncodeError::Invalid {
                    cause: "a variable byte integer is too large [MQTT5 1.5.5]",
                });
            }
            Property::VariableInt(_, value) => writer::variable_int(value, out),
            Property::Text(_, text) => writer::string("a property", text, out)?,
            Property::Binary(_, bytes) => writer::binary("a property", bytes, out)?,
            Property::Pair(_, name, value) => {
                writer::string("a user property's name", name, out)?;
                writer::string("a user property's value", value, out)?;
            }
        }
        Ok(())
    }

    /// The properties as a packet carries them.
    pub fn as_properties(&self) -> Properties<'_> {
        Properties::built(&self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::PropertyId;

    #[test]
    fn a_property_that_every_peer_refuses_is_not_added() {
        let mut properties = PropertiesBuilder::new();
        let long = "x".repeat(65_536);
        for refused in [
            Property::Byte(PropertyId::ReasonString, 1),
            Property::Byte(PropertyId::RetainAvailable, 2),
            Property::TwoBytes(PropertyId::TopicAlias, 0),
            Property::VariableInt(PropertyId::SubscriptionIdentifier, 268_435_456),
            Property::Text(PropertyId::ReasonString, "a\0b"),
            Property::Text(PropertyId::ReasonString, &long),
            Property::Text(PropertyId::ResponseTopic, "a/#"),
            Property::Pair(PropertyId::UserProperty, "name", &long),
        ] {
            assert!(properties.push(refused).is_err(), "{refused:?}");
            assert!(properties.as_properties().is_empty(), "{:?} was left by {refused:?}", properties.raw);
        }
    }
}
