//! The progress of an import, which its program shows.

/// What the numbers of a progress are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Bytes of the file.
    Bytes,
    /// Rows of the file.
    Rows,
}

/// Begins to show the progress of a file. The function that it returns takes what is done, and the whole; the display ends
/// when it is dropped.
pub type StartProgress = dyn Fn(Counted) -> Box<dyn FnMut(u64, u64)>;
