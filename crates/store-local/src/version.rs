//! The immutable parts at one moment, shared by readers until the last of them lets go.

/// All parts of the store.
#[derive(Debug, Default)]
pub(crate) struct Version {}
