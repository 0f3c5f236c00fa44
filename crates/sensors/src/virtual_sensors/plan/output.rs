//! The output structure against what the streams give.

use super::classes::Class;
use super::form::StreamPlan;
use crate::virtual_sensors::descriptor::Descriptor;
use crate::virtual_sensors::fault::{Fault, Note};

/// Each field of the output has to come from a stream, or from the class.
pub(super) fn check(
    descriptor: &Descriptor,
    class: &Class,
    streams: &[StreamPlan],
    notes: &mut Vec<Note>,
) -> Result<(), Fault> {
    let given: Vec<&str> = match class {
        Class::Bridge { .. } | Class::Scheduled { .. } => {
            let outputs = streams.iter().flat_map(|stream| &stream.query.output);
            outputs.map(|output| output.name.as_str()).collect()
        }
        Class::Counter => vec!["counter"],
        Class::MovingAverage { .. } => vec!["raw_value", "acceptable"],
    };
    if streams.is_empty() {
        let text = "the sensor has no stream, so it gives no rows".to_owned();
        notes.push(Note { place: descriptor.name.place, text });
        return Ok(());
    }
    for field in &descriptor.processing.output {
        if !given.contains(&field.name.value.as_str()) {
            let reason =
                format!("no stream gives the field {:?}; they give {}", field.name.value, given.join(", "));
            return Err(Fault::invalid(field.name.place, reason));
        }
    }
    let structure = &descriptor.processing.output;
    for stream in streams.iter().filter(|_| matches!(class, Class::Bridge { .. } | Class::Scheduled { .. })) {
        for output in stream.query.output.iter().filter(|output| output.name != "timed") {
            if !structure.iter().any(|field| field.name.value == output.name) {
                let text = format!(
                    "the field {:?} of stream {} is not in the output structure, so it is left out",
                    output.name, stream.name
                );
                notes.push(Note { place: descriptor.processing.place, text });
            }
        }
    }
    Ok(())
}
