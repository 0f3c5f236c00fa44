//! Accounts for the memory of operators that do not do so themselves.
//!
//! A window over all rows of a partition keeps them until the partition ends. A join returns a row once for each match, a window copies
//! the text of one row into all, and UNNEST copies the text beside a list once for each element: such a batch can be a
//! thousand times larger than its input. DataFusion's operators account for none of that. So a rule puts an operator below them
//! that counts rows that are held, and refuses values that would become too large when they are repeated.

mod operator;
mod repeated_values;
mod rule;

pub(super) use rule::account_memory;
