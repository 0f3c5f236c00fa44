//! The parts of a descriptor without effect.

use crate::virtual_sensors::descriptor::{Descriptor, Located};
use crate::virtual_sensors::fault::Note;

/// The notes that need nothing but the descriptor.
pub(super) fn of(descriptor: &Descriptor) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |place, text: &str| notes.push(Note { place, text: text.into() });
    if let Some(said) = &descriptor.priority {
        note(said.place, "priority has no effect");
    }
    if let Some(said) = descriptor.protected.as_ref().filter(|said| said.value) {
        note(said.place, "protected has no effect: the permissions of this server hold");
    }
    if let Some(said) = &descriptor.time_zone {
        note(said.place, "time-zone has no effect: times are UTC");
    }
    if let Some(said) = descriptor.sensor_map.as_ref().filter(|said| said.value) {
        note(said.place, "nothing is published to the sensor map, a service that has ended");
    }
    if let Some(said) = &descriptor.pool_size {
        note(said.place, "pool-size has no effect");
    }
    if let Some(said) = &descriptor.processing.partition_field {
        note(said.place, "partition-field has no effect: the store divides by time");
    }
    for Located { value, place } in &descriptor.processing.web_input {
        note(*place, &format!("the command {value:?} of web-input cannot be given here"));
    }
    for source in descriptor.streams.iter().flat_map(|stream| &stream.sources) {
        if let Some(said) = source.disconnect_buffer_size.as_ref().filter(|said| said.value > 0) {
            note(said.place, "disconnect-buffer-size has no effect");
        }
        for said in source.addresses.iter().filter_map(|address| address.partial_order_key.as_ref()) {
            note(said.place, "partial-order-key has no effect: the order is that of timed");
        }
    }
    notes
}
