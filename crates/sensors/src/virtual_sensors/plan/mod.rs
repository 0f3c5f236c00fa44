//! A descriptor that has been checked, with its SQL compiled: all that an execution needs.

mod broker;
mod classes;
mod columns;
mod explain;
mod exports;
mod form;
mod ignored_parts;
mod output;
mod params;
mod secret;
mod sources;
mod storage;
mod windows;
mod wrappers;

pub use broker::BrokerTls;
pub use classes::{ChartPlan, Class, DataCleanPlan, Model, ScriptletPlan};
pub use exports::{DatabaseExport, EmailExport, Encryption, Export, Method, MqttExport, WebhookExport};
pub use form::{Plan, SourceId, SourcePlan, StreamPlan};
pub(super) use output::NMEA_FIELDS;
pub use secret::{Secret, shown_url};
pub(crate) use storage::place as storage_place;
pub use storage::{DatabaseAddress, DatabaseKind, DatabaseOptions, JdbcUrl, StoragePlace, check_driver};
pub use windows::{Extent, Slide, Window};
pub use wrappers::{
    CsvColumn, CsvFile, CsvFormat, ExternalWrapper, JdbcWrapper, MqttTopic, Relation, Remote,
    RemoteInterface, TimePattern, TimeZone, Wrapper,
};

use super::descriptor::{Descriptor, Source};
use super::fault::{Faults, Findings};

impl Plan {
    /// Checks a descriptor. Sources whose fields nobody says have those that their queries and the output name.
    ///
    /// # Errors
    /// Names each place, the fault and what is expected.
    pub fn new(descriptor: &Descriptor) -> Result<Self, Faults> {
        Self::with_fields(descriptor, &|_| None)
    }

    /// As [`Self::new`]; the caller states which fields a source has, if it knows.
    ///
    /// # Errors
    /// Names each place, the fault and what is expected.
    pub fn with_fields(
        descriptor: &Descriptor,
        fields: &dyn Fn(&Source) -> Option<Vec<String>>,
    ) -> Result<Self, Faults> {
        let with_table = classes::with_table(descriptor);
        let descriptor = with_table.as_ref().unwrap_or(descriptor);
        let mut findings = Findings::new(ignored_parts::of(descriptor));
        let class = classes::class(descriptor, &mut findings.notes);
        let (class, export) = findings.keep(class).unzip();
        let export = export.flatten();
        let history = descriptor.storage.history_size.as_ref().map(windows::history).transpose();
        let history = findings.keep(history);
        let storage = storage::place(&descriptor.storage, &mut findings.notes);
        let storage = findings.keep(storage);
        let lateness = descriptor.lateness.as_ref().map(windows::lateness).transpose();
        let lateness = findings.keep(lateness);
        let mut given = Vec::new();
        let mut streams = Vec::new();
        for stream in &descriptor.streams {
            let (names, plan) = sources::stream(stream, descriptor, fields, &mut findings);
            given
                .extend(names.map(|names| output::StreamFields { stream: stream.name.value.clone(), names }));
            streams.extend(plan);
        }
        // Without the fields of all streams nobody knows which ones are missing.
        if let Some(class) = class.as_ref().filter(|_| given.len() == descriptor.streams.len()) {
            output::check(descriptor, class, &given, &mut findings);
        }
        let words = history.zip(lateness).zip(storage);
        let plan = class.zip(words).map(|(class, ((history, lateness), storage))| Self {
            name: descriptor.name.value.clone(),
            streams,
            class,
            export,
            output: descriptor.processing.output.clone(),
            output_rate: descriptor.processing.rate.as_ref().map_or(0, |rate| rate.value),
            unique_timestamps: descriptor.processing.unique_timestamps,
            history,
            storage,
            lateness,
            notes: Vec::new(),
        });
        let (plan, notes) = findings.end(plan)?;
        Ok(Self { notes, ..plan })
    }

    pub fn sources(&self) -> impl Iterator<Item = (SourceId, &SourcePlan)> {
        self.streams.iter().enumerate().flat_map(|(stream, plan)| {
            let sources = plan.sources.iter().enumerate();
            sources.map(move |(source, plan)| (SourceId { stream, source }, plan))
        })
    }

    /// A source.
    ///
    /// # Panics
    /// If the plan has no such source.
    pub fn source(&self, id: SourceId) -> &SourcePlan {
        &self.streams[id.stream].sources[id.source]
    }
}
