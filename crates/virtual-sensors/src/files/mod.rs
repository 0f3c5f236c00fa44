//! The directory of descriptors: which files have changed, what they say, and which of them can run together.

mod candidate;
mod container;
mod directory;
mod graph;
mod input_names;

pub(crate) use candidate::{Candidate, SensorFile};
pub(crate) use container::ContainerFiles;
pub use container::ContainerInfo;
pub(crate) use directory::{Changes, Directory};
pub(crate) use graph::{Node, refusals};
pub(crate) use input_names::{input_device, input_profile};
