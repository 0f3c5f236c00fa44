//! Annotations of OpenTSDB: notes about a time, of one series or of all, kept for each database.
//!
//! They are records of the key-value engine. A change is read, merged and committed under one lock; it is durable when
//! [`Hub::kv_durable`](crate::Hub::kv_durable) says so.

mod deletion;
mod error;
pub mod limits;
mod record;
mod usage;

pub use deletion::AnnotationDeletion;
pub use error::AnnotationError;
pub(crate) use record::{ANNOTATIONS, between, canonical, key, millis, of_database};
pub use record::{Annotation, AnnotationChange};
pub(crate) use usage::Usages;
