//! The parts of a plan.

use super::classes::Class;
use super::exports::Export;
use super::storage::StoragePlace;
use super::windows::{Extent, Window};
use super::wrappers::Wrapper;
use crate::virtual_sensors::descriptor::Field;
use crate::virtual_sensors::fault::Note;
use crate::virtual_sensors::sql::query::Query;

/// What a virtual sensor does.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The name of the sensor.
    pub name: String,
    /// The streams, in their order.
    pub streams: Vec<StreamPlan>,
    /// What is done with their rows.
    pub class: Class,
    /// Where its rows go besides the store.
    pub export: Option<Export>,
    /// The fields of the output.
    pub output: Vec<Field>,
    /// Least milliseconds between rows of the output.
    pub output_rate: i64,
    /// Whether a second row of the same time is dropped.
    pub unique_timestamps: bool,
    /// How much of the output is to be kept; everything without it.
    pub history: Option<Extent>,
    /// Where the output goes, if the descriptor says it.
    pub storage: Option<StoragePlace>,
    /// How many milliseconds elements may be late in event time. Without it they are taken as they come.
    pub lateness: Option<i64>,
    /// What has no effect, or another one than one may expect.
    pub notes: Vec<Note>,
}

/// One stream of a plan.
#[derive(Debug, Clone)]
pub struct StreamPlan {
    pub name: String,
    /// Least milliseconds between two executions.
    pub rate: i64,
    /// Most executions that give rows.
    pub count: Option<u64>,
    /// The sources, in their order.
    pub sources: Vec<SourcePlan>,
    pub(crate) query: Query,
}

/// One source of a plan.
#[derive(Debug, Clone)]
pub struct SourcePlan {
    /// The name under which the stream reads it.
    pub alias: String,
    /// Where its elements come from.
    pub wrapper: Wrapper,
    pub window: Window,
    /// Elements are kept whose time modulo 100 is less; all without it.
    pub sampling: Option<f64>,
    /// The fields of an element, in the order of its row. The first is `timed`.
    pub columns: Vec<String>,
    /// Fields that are said to be text, so that a reader of a file does not take "007" for a number.
    pub text_columns: Vec<String>,
    pub(crate) query: Query,
}

/// A source of a plan, by the places of its stream and of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId {
    pub stream: usize,
    /// The source in the stream.
    pub source: usize,
}
