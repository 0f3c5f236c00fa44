//! The progress of a store towards the durability of an ack.

pub use model::Durability;

/// A position in the order of all appended rows and of deletions. Sequences grow by one per row or deletion and are never
/// used twice.
pub type Sequence = u64;

/// The progress of a store. Each sequence stands for itself and all earlier ones, except for writes that failed late
/// ([`Writer::late_failure`](crate::Writer::late_failure)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The store has the rows in memory.
    pub appended: Sequence,
    /// The store has written the rows to the operating system.
    pub written: Sequence,
    /// The store has synced the rows to the disk.
    pub durable: Sequence,
    /// The store refuses all further writes. Rows that are not durable yet will never be.
    pub sealed: bool,
}

impl Progress {
    /// The sequence up to which `durability` holds.
    pub fn reached(&self, durability: Durability) -> Sequence {
        match durability {
            Durability::Memory => self.appended,
            Durability::Os => self.written,
            Durability::Fsync => self.durable,
        }
    }
}

/// Receives the changes of [`Progress`].
pub trait ProgressWatcher: Send + Sync {
    /// A thread of the store makes this call. It must not block.
    fn progress(&self, progress: Progress);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_waits_for_its_own_position() {
        let progress = Progress { appended: 30, written: 20, durable: 10, sealed: false };
        let reached: Vec<_> = Durability::ALL.map(|class| progress.reached(class)).into();
        assert_eq!(reached, [30, 20, 10]);
    }
}
