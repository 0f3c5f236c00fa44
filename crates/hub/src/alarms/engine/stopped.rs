//! The end of the engine.

/// Why the engine has stopped.
#[derive(Debug)]
pub(super) enum Stopped {
    /// The hub closes.
    Asked,
    /// A store failed.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl Stopped {
    pub(super) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }
}
