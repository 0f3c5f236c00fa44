//! A file that was read: a sensor that can run, or why it cannot.

use std::sync::Arc;

use model::name::{check_key, check_tag_value};
use sensors::virtual_sensors::descriptor::{Descriptor, Located};
use sensors::virtual_sensors::plan::{Class, ExternalWrapper, Plan, Wrapper};
use sensors::virtual_sensors::{Fault, FaultKind, Faults};
use xxhash_rust::xxh3::xxh3_128;

use super::input_names::input_device;
use crate::limits::CLASS_VALUES_MAX;

/// A sensor as a file says it.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) descriptor: Descriptor,
    pub(crate) plan: Arc<Plan>,
    /// The hash of the text, in hexadecimal digits.
    pub(crate) digest: String,
}

/// A file of the directory.
#[derive(Debug)]
pub(crate) struct SensorFile {
    /// What it says now, or its faults.
    pub(crate) latest: Result<Arc<Candidate>, String>,
    /// Why it is not used as it is now.
    pub(crate) problem: Option<String>,
}

impl Candidate {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The places, the faults and what is expected, one on each line.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let read = || -> Result<Self, Faults> {
            let descriptor = Descriptor::parse(text)?;
            let plan = Plan::new(&descriptor)?;
            check(&descriptor, &plan)?;
            let digest = format!("{:032x}", xxh3_128(text.as_bytes()));
            Ok(Self { descriptor, plan: Arc::new(plan), digest })
        };
        read().map_err(|faults| faults.to_string())
    }

    /// The parts of the file without effect.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.plan.notes.iter().map(|note| format!("{}: {}", note.place, note.text))
    }

    /// The names of the sensors whose output it reads.
    pub(crate) fn locals(&self) -> impl Iterator<Item = &str> {
        self.plan.sources().filter_map(|(_, source)| match &source.wrapper {
            Wrapper::Local { sensor } => Some(sensor.as_str()),
            Wrapper::Tacho { .. } | Wrapper::External(_) => None,
        })
    }

    /// The devices that it reads by name.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &str> {
        self.plan.sources().filter_map(|(_, source)| match &source.wrapper {
            Wrapper::Tacho { device, .. } => Some(device.as_str()),
            Wrapper::Local { .. } | Wrapper::External(_) => None,
        })
    }
}

/// What a plan may say and this server does not do.
fn check(descriptor: &Descriptor, plan: &Plan) -> Result<(), Fault> {
    let invalid = |said: &Located<String>, reason: String| {
        Err(Fault { place: said.place, kind: FaultKind::Invalid, reason })
    };
    if let Err(error) = check_tag_value(&descriptor.name.value) {
        return invalid(&descriptor.name, format!("the name cannot be that of a device: {error}"));
    }
    for field in &descriptor.processing.output {
        if let Err(error) = check_key(&field.name.value) {
            return invalid(&field.name, format!("the field cannot be a key of a table: {error}"));
        }
    }
    let streams = descriptor.streams.iter().flat_map(|stream| &stream.sources);
    for (source, (id, planned)) in streams.zip(plan.sources()) {
        let Some(external) = planned.wrapper.external() else { continue };
        if matches!(external, ExternalWrapper::Csv(file) if file.columns.is_empty()) {
            let reason = "wrapper csv needs the predicate \"fields\" in the server: the names of the columns";
            return invalid(&source.alias, reason.to_owned());
        }
        if let Err(error) = check_tag_value(&input_device(plan, id)) {
            return invalid(&source.alias, format!("the names cannot be those of a device: {error}"));
        }
    }
    let (word, size) = match &plan.class {
        Class::MovingAverage { size, .. } => ("size", *size),
        Class::DataClean(plan) => ("window_size", plan.window_size),
        _ => return Ok(()),
    };
    if size > CLASS_VALUES_MAX {
        let reason = format!("{word} is {size}; in the server at most {CLASS_VALUES_MAX} (CLASS_VALUES_MAX)");
        return invalid(&descriptor.processing.class_name, reason);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sensor over one wrapper: an address in TOML.
    fn sensor(name: &str, address: &str) -> String {
        format!(
            "name = \"{name}\"\n[processing-class]\n[[processing-class.output-structure.field]]\nname = \"mean\"\ntype = \"double\"\n\
             [[stream]]\nname = \"s\"\nquery = \"select avg(speed) as mean from a\"\n[[stream.source]]\nalias = \"a\"\n\
             storage-size = \"3\"\n[[stream.source.address]]\n{address}\n"
        )
    }

    #[test]
    fn a_fault_has_its_place() {
        let text = sensor("v", "wrapper = \"csv\"\n[stream.source.address.predicate]\nfile = \"a.csv\"");
        let reason = Candidate::read(&text).unwrap_err();
        assert!(
            reason
                .starts_with("line 10, column 10: wrapper csv needs the predicate \"fields\" in the server"),
            "{reason}"
        );
        let reason = Candidate::read("name = 1\n").unwrap_err();
        assert!(reason.starts_with("line 1"), "{reason}");
    }

    #[test]
    fn a_sensor_names_those_that_it_reads() {
        let text = sensor("v", "wrapper = \"local\"\n[stream.source.address.predicate]\nname = \"Other\"");
        let candidate = Candidate::read(&text).unwrap();
        assert_eq!(candidate.locals().collect::<Vec<_>>(), ["other"]);
        assert_eq!(candidate.digest.len(), 32);
    }
}
