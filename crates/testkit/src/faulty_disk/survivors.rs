//! The choice of a test about unsynced changes.

/// The unsynced changes that survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    /// None of them.
    Synced,
    /// All of them: the process died, but the machine did not.
    All,
    /// A random subset of the unsynced sectors of 512 bytes, so that writes are torn and out of order, and the first few
    /// of the unsynced name changes. The seed makes the choice repeatable.
    Random(u64),
}
