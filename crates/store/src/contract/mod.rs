//! The contract in three parts: a user of a store names the part that it needs.

mod maintenance;
mod reader;
mod writer;

pub use maintenance::Maintenance;
pub use reader::Reader;
pub use writer::Writer;

use crate::durability::Durability;
use crate::error::StoreError;
use crate::ticket::{Outcome, Ticket};

/// A backend that keeps rows. All calls are safe from any thread.
pub trait Store: Writer + Reader + Maintenance {
    /// The outcome of a write. An outcome other than [`Outcome::Pending`] is final.
    fn outcome(&self, ticket: Ticket, durability: Durability) -> Outcome {
        let progress = self.progress();
        if progress.reached(durability) >= ticket.last {
            return self.late_failure(ticket).map_or(Outcome::Kept, Outcome::Failed);
        }
        if !progress.sealed {
            return Outcome::Pending;
        }
        let cause = self.status().sealed.unwrap_or_else(|| "a write failed".to_owned());
        Outcome::Failed(StoreError::Sealed { cause })
    }
}

impl<S: Writer + Reader + Maintenance> Store for S {}
