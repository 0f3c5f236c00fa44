//! A descriptor that has been checked, with its SQL compiled: all that an execution needs.

mod classes;
mod columns;
mod explain;
mod form;
mod notes;
mod output;
mod sources;
mod windows;
mod wrappers;

pub use classes::Class;
pub use form::{Plan, SourceId, SourcePlan, StreamPlan};
pub use windows::{Extent, Slide, Window};
pub use wrappers::Wrapper;

use super::descriptor::{Descriptor, Source};
use super::fault::Fault;

impl Plan {
    /// Checks a descriptor. Sources whose fields nobody says have those that their queries and the output name.
    ///
    /// # Errors
    /// Names the place, the fault and what is expected.
    pub fn new(descriptor: &Descriptor) -> Result<Self, Fault> {
        Self::with_fields(descriptor, &|_| None)
    }

    /// As [`Self::new`]; the caller says which fields a source has, if it knows.
    ///
    /// # Errors
    /// Names the place, the fault and what is expected.
    pub fn with_fields(
        descriptor: &Descriptor,
        fields: &dyn Fn(&Source) -> Option<Vec<String>>,
    ) -> Result<Self, Fault> {
        let mut notes = notes::of(descriptor);
        let class = classes::class(&descriptor.processing, &mut notes)?;
        let mut streams = Vec::new();
        for stream in &descriptor.streams {
            streams.push(sources::stream(stream, descriptor, fields, &mut notes)?);
        }
        output::check(descriptor, &class, &streams, &mut notes)?;
        let history = descriptor.storage.history_size.as_ref().map(windows::history).transpose()?;
        let plan = Self {
            name: descriptor.name.value.clone(),
            streams,
            class,
            output: descriptor.processing.output.clone(),
            output_rate: descriptor.processing.rate.as_ref().map_or(0, |rate| rate.value),
            unique_timestamps: descriptor.processing.unique_timestamps,
            history,
            notes,
        };
        Ok(plan)
    }

    /// All sources.
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
