//! The state that the thread of the sensors shares with doors and connectors.

mod connectors;
mod pushes;
mod sensors;
mod source_selector;

pub(crate) use self::sensors::{Infos, Sensors};
pub use connectors::ExternalSources;
pub use pushes::{PushAnswer, PushReceiver, PushedElement};
pub(crate) use source_selector::{Outputs, SourceSelector};
