//! Which devices the sources of sensors read.

use std::collections::HashSet;

use hub::registry::Device;
use model::TableName;
use sensors::virtual_sensors::plan::{Plan, SourceId, Wrapper};

use crate::files::{input_device, input_profile};

/// The names of all sensors, which are those of the devices of their output, and of the devices of elements from outside.
pub(crate) type Outputs = HashSet<String>;

/// The devices that a source reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceSelector {
    /// The name of a device; `*` stands for any text.
    device: String,
    table: Option<String>,
    profile: Option<String>,
}

impl SourceSelector {
    /// The devices of a source.
    pub(crate) fn of(plan: &Plan, id: SourceId) -> Self {
        match &plan.source(id).wrapper {
            Wrapper::Tacho { device, table, profile } => {
                Self { device: device.clone(), table: table.clone(), profile: profile.clone() }
            }
            // The output of a sensor is that of the device of its name.
            Wrapper::Local { sensor } => {
                Self { device: sensor.clone(), table: None, profile: Some(sensor.clone()) }
            }
            // A connector writes what comes from outside.
            Wrapper::External(_) => {
                Self { device: input_device(plan, id), table: None, profile: Some(input_profile(&plan.name)) }
            }
        }
    }

    /// The devices with a name or a pattern of names.
    #[cfg(test)]
    pub(crate) fn of_device(device: &str) -> Self {
        Self { device: device.to_owned(), table: None, profile: None }
    }

    /// Whether the name is that of one device.
    pub(crate) fn is_of_one(&self) -> Option<&str> {
        (!self.device.contains('*')).then_some(self.device.as_str())
    }

    /// Whether a source with this selector reads a device.
    pub(crate) fn is_for(&self, device: &Device, outputs: &Outputs) -> bool {
        self.fits(&device.name, &device.profile.table, || device.profile.name.clone(), outputs)
    }

    /// The same for a device whose profile is looked up only if a selector names one. A pattern stands for no device of a sensor:
    /// a sensor would read itself.
    pub(crate) fn fits(
        &self,
        name: &str,
        table: &TableName,
        profile: impl FnOnce() -> String,
        outputs: &Outputs,
    ) -> bool {
        (self.is_of_one().is_some() || !outputs.contains(name))
            && matches(&self.device, name)
            && self.table.as_deref().is_none_or(|wanted| wanted == table.name())
            && self.profile.as_deref().is_none_or(|wanted| wanted == profile())
    }
}

/// Whether a text is a pattern with something for each `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let fitting = [
            ("truck-7", "truck-7"),
            ("truck-*", "truck-"),
            ("truck-*", "truck-12"),
            ("*", ""),
            ("*-7", "truck-7"),
            ("a*b*c", "abc"),
            ("a*b*c", "a1b2b3c"),
            ("*ü*", "süß"),
        ];
        for (pattern, text) in fitting {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("truck-7", "truck-77"), ("truck-*", "car-1"), ("a*a", "a"), ("a*b*c", "acb"), ("", "x")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_source_reads_devices_by_name_table_and_profile() {
        let table = TableName::new(&model::Namespace::DEFAULT, "trucks").unwrap();
        let fits = |table_wanted: Option<&str>, profile: Option<&str>| {
            let (table_wanted, profile) = (table_wanted.map(str::to_owned), profile.map(str::to_owned));
            let selector = SourceSelector { device: "t*".into(), table: table_wanted, profile };
            selector.fits("t1", &table, || "truck".to_owned(), &Outputs::new())
        };
        assert!(fits(None, None) && fits(Some("trucks"), None) && fits(None, Some("truck")));
        assert!(!fits(Some("telemetry"), None) && !fits(None, Some("car")));
        let outputs = Outputs::from(["t1".to_owned()]);
        let reads = |device: &str| {
            let selector = SourceSelector { device: device.to_owned(), table: None, profile: None };
            selector.fits("t1", &table, String::new, &outputs)
        };
        assert!(reads("t1") && !reads("t*"));
    }
}
