//! Sources of sensors whose elements come from outside of the store.
//!
//! A connector appends what comes as rows of a device that belongs to the source, and the sensor reads this device like any other. So
//! its output is a function of stored rows also here.

use std::sync::Arc;

use hub::registry::Device;
use sensors::virtual_sensors::plan::{ExternalWrapper, SourceId};
use uuid::Uuid;

use crate::files::Candidate;
use crate::files::input_device;

/// A source of a sensor that runs, whose elements come from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalSource {
    /// The name of the sensor.
    pub sensor: String,
    /// The name of the stream.
    pub stream: String,
    /// The alias of the source.
    pub alias: String,
    /// Where the elements come from.
    pub external: ExternalWrapper,
    /// The fields that the sensor reads, in lower case, without `timed`.
    pub fields: Vec<String>,
    /// The device whose rows are the elements.
    pub device: Arc<Device>,
}

/// What the connector of a source reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceState {
    /// Whether it reads, or waits for more.
    pub is_connected: bool,
    /// Elements that it has stored since it began.
    pub elements: u64,
    /// Elements that could not be read or stored. They are kept as dead letters if there was something to keep.
    pub refused: u64,
    /// Elements that came while the server was busy, from a source that cannot wait.
    pub dropped: u64,
    /// Times that the connection was lost, or could not be made.
    pub failures: u64,
    /// What went wrong last, and where.
    pub last_error: Option<String>,
}

/// The description of a source whose elements come from outside for callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceInfo {
    /// The stream and the alias, such as `input/road`.
    pub source: String,
    /// The name of the wrapper.
    pub wrapper: &'static str,
    /// Where the elements come from, in words without secrets.
    pub address: String,
    /// The name of the device whose rows are the elements.
    pub device: String,
    pub(crate) device_id: Uuid,
    /// What its connector has reported; nothing before it began.
    pub state: SourceState,
}

impl ExternalSource {
    /// The stream and the alias.
    pub fn source(&self) -> String {
        format!("{}/{}", self.stream, self.alias)
    }

    pub(crate) fn info(&self) -> SourceInfo {
        SourceInfo {
            source: self.source(),
            wrapper: self.external.wrapper(),
            address: self.external.describe(),
            device: self.device.name.clone(),
            device_id: self.device.id,
            state: SourceState::default(),
        }
    }
}

impl Candidate {
    /// The sources whose elements come from outside.
    pub(crate) fn external(&self) -> impl Iterator<Item = (SourceId, &ExternalWrapper)> {
        self.plan.sources().filter_map(|(id, source)| Some((id, source.wrapper.external()?)))
    }

    /// The names of the devices whose rows are the elements of these sources.
    pub(crate) fn input_devices(&self) -> impl Iterator<Item = String> {
        self.external().map(|(id, _)| input_device(&self.plan, id))
    }

    /// A source with its device.
    pub(crate) fn external_source(
        &self,
        (id, external): (SourceId, &ExternalWrapper),
        device: Arc<Device>,
    ) -> ExternalSource {
        let plan = &self.plan;
        let source = plan.source(id);
        ExternalSource {
            sensor: plan.name.clone(),
            stream: plan.streams[id.stream].name.clone(),
            alias: source.alias.clone(),
            external: external.clone(),
            fields: source.columns[1..].to_vec(),
            device,
        }
    }
}
