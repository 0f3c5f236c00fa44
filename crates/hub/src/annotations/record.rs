//! Annotations and their records. `docs/format/annotations.md` describes the records.

use std::collections::BTreeMap;

use kv::{KeyRange, Space};
use model::Namespace;
use serde::{Deserialize, Serialize};

use super::error::AnnotationError;
use super::limits::{ANNOTATION_BYTES_MAX, TSUID_BYTES_MAX};

/// The annotations of all databases.
pub(crate) const ANNOTATIONS: Space = Space::new("annotations");

/// A note about a time, of one series or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotation {
    /// The series; empty for a note about all of them. The key of a record has it.
    #[serde(skip_deserializing)]
    pub tsuid: String,
    /// When it begins: seconds, or milliseconds if it needs more than 32 bits, as its author gave it.
    pub start_time: i64,
    /// When it ends, or 0.
    pub end_time: i64,
    /// A line.
    pub description: String,
    /// More text.
    pub notes: String,
    /// Texts by names that its author chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<BTreeMap<String, String>>,
}

/// The statement of an author about an annotation. A member that is `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnotationChange {
    /// The series; empty for a note about all of them.
    pub tsuid: String,
    /// When it begins.
    pub start_time: i64,
    /// When it ends.
    pub end_time: Option<i64>,
    /// A line.
    pub description: Option<String>,
    /// More text.
    pub notes: Option<String>,
    /// Texts by names.
    pub custom: Option<BTreeMap<String, String>>,
}

impl AnnotationChange {
    /// Whether it says anything besides which annotation it is about.
    pub fn is_change(&self) -> bool {
        self.end_time.is_some() || self.description.is_some() || self.notes.is_some() || self.custom.is_some()
    }

    /// The annotation after the change. With `replace` what the change does not say is empty.
    pub(crate) fn on(self, stored: Option<Annotation>, replace: bool) -> Result<Annotation, AnnotationError> {
        // Seconds and milliseconds can name the same time; the shorter number stays.
        let start_time =
            stored.as_ref().map_or(self.start_time, |stored| stored.start_time.min(self.start_time));
        let before = stored.filter(|_| !replace).unwrap_or_default();
        let annotation = Annotation {
            tsuid: self.tsuid,
            start_time,
            end_time: self.end_time.unwrap_or(before.end_time),
            description: self.description.unwrap_or(before.description),
            notes: self.notes.unwrap_or(before.notes),
            custom: self.custom.or(before.custom),
        };
        AnnotationError::check("bytes of an annotation", annotation.bytes(), ANNOTATION_BYTES_MAX)?;
        Ok(annotation)
    }
}

impl Annotation {
    fn bytes(&self) -> usize {
        let custom = self.custom.iter().flatten().map(|(name, value)| name.len() + value.len());
        self.description.len() + self.notes.len() + custom.sum::<usize>()
    }

    /// The value of its record.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let stored = Self { tsuid: String::new(), ..self.clone() };
        serde_json::to_vec(&stored).expect("BUG: numbers and texts are always JSON")
    }
}

/// The milliseconds of a time in seconds or milliseconds. It must be after 1970.
pub(crate) fn millis(time: i64) -> Result<u64, AnnotationError> {
    match time {
        ..1 => Err(AnnotationError::Invalid("The start timestamp has not been set".to_owned())),
        1..=0xFFFF_FFFF => Ok(time.cast_unsigned() * 1_000),
        _ => Ok(time.cast_unsigned()),
    }
}

/// The canonical text that names a series: its tags are in the order of their names.
///
/// # Errors
/// The text names none.
pub(crate) fn canonical(tsuid: &str) -> Result<String, AnnotationError> {
    if tsuid.is_empty() {
        return Ok(String::new());
    }
    AnnotationError::check("bytes of a TSUID", tsuid.len(), TSUID_BYTES_MAX)?;
    let parts = timeseries::opentsdb::tsuid_parts(tsuid);
    let (metric, mut tags) = parts.map_err(|error| AnnotationError::Invalid(error.to_string()))?;
    tags.sort_unstable();
    Ok(timeseries::opentsdb::tsuid(&metric, &tags))
}

/// The keys of a database.
pub(crate) fn of_database(namespace: &Namespace) -> Vec<u8> {
    let name = namespace.name().unwrap_or_default().as_bytes();
    // A name has at most 64 bytes.
    [&[name.len() as u8], name].concat()
}

/// The keys of a series, or those of the notes about all.
pub(crate) fn of_series(namespace: &Namespace, tsuid: &str) -> Vec<u8> {
    let mut key = of_database(namespace);
    let bytes: Vec<u8> = (0..tsuid.len() / 2)
        .filter_map(|at| u8::from_str_radix(tsuid.get(at * 2..at * 2 + 2)?, 16).ok())
        .collect();
    // A canonical text has at most TSUID_BYTES_MAX bytes, two for each byte here.
    key.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    key.extend_from_slice(&bytes);
    key
}

/// The key of an annotation.
pub(crate) fn key(namespace: &Namespace, tsuid: &str, millis: u64) -> Vec<u8> {
    let mut key = of_series(namespace, tsuid);
    key.extend_from_slice(&millis.to_be_bytes());
    key
}

/// The keys of a series, or of the notes about all, from one time to another, both included.
pub(crate) fn between(namespace: &Namespace, tsuid: &str, (from, to): (u64, u64)) -> KeyRange {
    KeyRange::new(key(namespace, tsuid, from), key(namespace, tsuid, to.saturating_add(1)))
}

const _: () = assert!(TSUID_BYTES_MAX / 2 <= u16::MAX as usize, "the length of a series fits into a key");
const _: () = assert!(
    TSUID_BYTES_MAX / 2 + model::limits::NAMESPACE_BYTES_MAX + 11 <= kv::limits::KEY_BYTES_MAX,
    "a key has room for the longest series"
);
