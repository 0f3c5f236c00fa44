//! Engines carry out a plan. An engine owns sockets or threads, the clock, the queue of due operations and the
//! recorder. A driver (`crate::driver`) turns operations into bytes or calls and checks answers.
//!
//! [`event`] runs sans-I/O protocols on a few threads with epoll, for thousands of connections. [`threads`] has one
//! thread per connection, for blocking clients: SQL, and the machine itself.

pub mod event;
mod failure_rule;
mod outcome;
mod plan;
mod segments;
mod shared;
mod slices;
pub mod threads;

pub use failure_rule::{FailureRule, FailureWindow};
pub use outcome::{Ended, Event, Outcome, SegmentOutcome};
pub use plan::{AfterReopen, Close, Connect, Load, Plan, ReopenTrigger, Segment};
pub use shared::Shared;
pub use slices::{Slice, SliceSource};
