//! The output structure against what the streams give.

use super::classes::{ChartPlan, Class};
use crate::virtual_sensors::descriptor::{DataType, Descriptor};
use crate::virtual_sensors::fault::{Fault, Findings, Note};

/// The fields that a stream gives.
pub(super) struct StreamFields {
    pub(super) stream: String,
    pub(super) names: Vec<String>,
}

/// Each field of the output must come from a stream, or from the class.
pub(super) fn check(
    descriptor: &Descriptor,
    class: &Class,
    streams: &[StreamFields],
    findings: &mut Findings,
) {
    if streams.is_empty() {
        let text = "the sensor has no stream, so it makes no rows".to_owned();
        findings.notes.push(Note { place: descriptor.name.place, text });
        return;
    }
    let of_streams = || streams.iter().flat_map(|stream| &stream.names).map(String::as_str).collect();
    let given: Vec<&str> = match class {
        Class::Counter => vec!["counter"],
        Class::MovingAverage { .. } => vec!["raw_value", "acceptable"],
        Class::DataClean(_) => vec!["stream", "processed", "dirtiness", "distance", "quality"],
        Class::Nmea => NMEA_FIELDS.to_vec(),
        Class::Scriptlet(plan) => {
            let names: Vec<&str> = of_streams();
            plan.check(descriptor, &names, findings);
            descriptor.processing.output.iter().map(|field| field.name.value.as_str()).collect()
        }
        Class::Chart(plan) => {
            check_stream(plan, descriptor, streams, findings);
            of_streams()
        }
        Class::Bridge { .. } | Class::Scheduled { .. } | Class::Clocked { .. } => of_streams(),
    };
    check_fields(descriptor, class, &given, findings);
    note_left_out(descriptor, class, streams, findings);
}

/// What the class GPSNMEA gives.
pub(in crate::virtual_sensors) const NMEA_FIELDS: [&str; 8] =
    ["latitude", "longitude", "altitude", "speed", "course", "time", "satellites", "hdop"];

fn check_fields(descriptor: &Descriptor, class: &Class, given: &[&str], findings: &mut Findings) {
    // A field of bytes is the chart itself.
    let is_chart =
        |data_type: &DataType| matches!((class, data_type), (Class::Chart(_), DataType::Binary(_)));
    for field in &descriptor.processing.output {
        if given.contains(&field.name.value.as_str()) || is_chart(&field.data_type) {
            continue;
        }
        let giver = match class {
            Class::Bridge { .. } | Class::Scheduled { .. } | Class::Clocked { .. } | Class::Chart(_) => {
                format!("no stream gives the field {:?}; they give {}", field.name.value, given.join(", "))
            }
            _ => format!(
                "the class does not give the field {:?}; it gives {}",
                field.name.value,
                given.join(", ")
            ),
        };
        findings.keep::<()>(Err(Fault::invalid(field.name.place, giver)));
    }
}

/// The stream that a chart names must be there.
fn check_stream(
    plan: &ChartPlan,
    descriptor: &Descriptor,
    streams: &[StreamFields],
    findings: &mut Findings,
) {
    let Some(name) = &plan.input_stream else { return };
    if streams.iter().any(|stream| stream.stream == *name) {
        return;
    }
    let params = &descriptor.processing.params;
    let said = params.iter().find(|pair| pair.key.value == "input-stream");
    let place = said.map_or(descriptor.processing.place, |pair| pair.value.place);
    let names: Vec<_> = streams.iter().map(|stream| stream.stream.as_str()).collect();
    let reason = format!("input-stream is {name:?}; streams are {}", names.join(", "));
    findings.keep::<()>(Err(Fault::invalid(place, reason)));
}

fn note_left_out(descriptor: &Descriptor, class: &Class, streams: &[StreamFields], findings: &mut Findings) {
    if !matches!(class, Class::Bridge { .. } | Class::Scheduled { .. } | Class::Clocked { .. }) {
        return;
    }
    let structure = &descriptor.processing.output;
    for stream in streams {
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
