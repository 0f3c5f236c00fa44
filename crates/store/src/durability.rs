//! Durability classes: the promise of an ack, and the progress of a store towards it.

use std::fmt;
use std::str::FromStr;

/// A position in the order of all appended rows and of deletions. Sequences grow by one per row or deletion and are never
/// used twice.
pub type Sequence = u64;

/// Durability classes. They differ in the events that may lose acknowledged rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Durability {
    /// The end of the process loses the rows that the store has not written yet.
    Memory,
    /// A power cut or a crash of the operating system loses the rows that the system has not written yet. `kill -9`
    /// loses none.
    Os,
    /// Only the loss of the disk loses rows: the ack comes after fdatasync.
    #[default]
    Fsync,
}

impl Durability {
    /// All classes, weakest first.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Os, Self::Fsync];

    /// The name in configuration, metrics and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Os => "os",
            Self::Fsync => "fsync",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|class| class.name() == name)
            .ok_or_else(|| format!("unknown durability class {name:?}; use memory, os or fsync"))
    }
}

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
    fn classes_have_names_that_parse_back() {
        for class in Durability::ALL {
            assert_eq!(class.name().parse(), Ok(class));
        }
        assert!("quorum".parse::<Durability>().unwrap_err().contains("fsync"));
        assert_eq!(Durability::default(), Durability::Fsync);
    }

    #[test]
    fn each_class_waits_for_its_own_position() {
        let progress = Progress { appended: 30, written: 20, durable: 10, sealed: false };
        let reached: Vec<_> = Durability::ALL.map(|class| progress.reached(class)).into();
        assert_eq!(reached, [30, 20, 10]);
    }
}
