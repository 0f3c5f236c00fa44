//! The end of a thread that evaluates rows.

/// Why a thread that evaluates rows has stopped.
#[derive(Debug)]
pub enum ThreadEnd {
    /// The hub closes.
    Asked,
    /// A store failed.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

impl ThreadEnd {
    /// The end because of an error of a store.
    pub fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }
}
