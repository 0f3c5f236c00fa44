//! Durability classes: the promise of an ack.

use std::fmt;
use std::str::FromStr;

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
}
