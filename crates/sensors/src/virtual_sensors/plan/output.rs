//! The output structure against what the streams give.

use super::classes::Class;
use crate::virtual_sensors::descriptor::Descriptor;
use crate::virtual_sensors::fault::{Fault, Findings, Note};

/// The fields that a stream gives.
pub(super) struct Given {
    pub(super) stream: String,
    pub(super) names: Vec<String>,
}

/// Each field of the output has to come from a stream, or from the class.
pub(super) fn check(descriptor: &Descriptor, class: &Class, streams: &[Given], findings: &mut Findings) {
    let passes = matches!(class, Class::Bridge { .. } | Class::Scheduled { .. });
    let given: Vec<&str> = match class {
        Class::Counter => vec!["counter"],
        Class::MovingAverage { .. } => vec!["raw_value", "acceptable"],
        _ => streams.iter().flat_map(|stream| &stream.names).map(String::as_str).collect(),
    };
    if streams.is_empty() {
        let text = "the sensor has no stream, so it gives no rows".to_owned();
        findings.notes.push(Note { place: descriptor.name.place, text });
        return;
    }
    let structure = &descriptor.processing.output;
    for field in structure.iter().filter(|field| !given.contains(&field.name.value.as_str())) {
        let reason =
            format!("no stream gives the field {:?}; they give {}", field.name.value, given.join(", "));
        findings.keep::<()>(Err(Fault::invalid(field.name.place, reason)));
    }
    for stream in streams.iter().filter(|_| passes) {
        for name in stream.names.iter().filter(|name| *name != "timed") {
            if !structure.iter().any(|field| field.name.value == *name) {
                let stream = &stream.stream;
                let text = format!(
                    "the field {name:?} of stream {stream} is not in the output structure, so it is left out"
                );
                findings.notes.push(Note { place: descriptor.processing.place, text });
            }
        }
    }
}
