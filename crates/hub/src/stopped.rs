//! The end of a thread that evaluates rows.

/// Why a thread that evaluates rows has stopped.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The hub closes.
    Asked,
    /// A store failed.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl Stopped {
    pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }
}
