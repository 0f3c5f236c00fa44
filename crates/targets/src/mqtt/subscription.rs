//! SUBSCRIBE.

use wire::mqtt::{Filter, Packet, PropertiesBuilder, ProtocolVersion, QoS, Subscribe, encode};

/// The packet identifier of the only SUBSCRIBE of a connection.
const SUBSCRIBE_ID: u16 = 1;

/// Appends a SUBSCRIBE for these filters. The error states which of them MQTT does not allow.
pub(crate) fn subscribe(
    filters: &[impl AsRef<str>],
    qos: QoS,
    version: ProtocolVersion,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let of = |topic| Filter { topic, options: qos as u8 };
    let filters: Vec<Filter<'_>> = filters.iter().map(AsRef::as_ref).map(of).collect();
    let layout = Subscribe::layout(&filters).map_err(|error| error.to_string())?;
    let none = PropertiesBuilder::new();
    let subscribe = Subscribe::new(SUBSCRIBE_ID, none.as_properties(), &layout);
    encode(&Packet::Subscribe(subscribe), version, out).map_err(|error| error.to_string())
}
