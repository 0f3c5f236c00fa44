//! Who must act on an error.

/// Who must act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The caller: the request is wrong, and will fail again.
    Caller,
    /// Nobody: the same request will succeed later.
    Busy,
    /// The operator of the machine.
    Operator,
}
