//! Engines carry out a plan: they own sockets or threads, the clock, the queue of what is due and the recorder; a driver
//! (`crate::driver`) only turns operations into bytes or calls and judges answers.
//!
//! [`event`] runs sans-I/O protocols on a few threads with epoll, for thousands of connections.
//! [`threads`] has one thread per connection, for clients that block: SQL, and the machine itself.

pub mod event;
mod plan;
mod run;
mod sustained;
pub mod threads;
mod turns;

pub use plan::{Close, Connect, Load, Plan, Segment, Then, When};
pub use run::{Ended, Event, Outcome, SegmentOutcome, Shared};
pub use sustained::{Failing, Sustained};
pub use turns::{Turn, Turns};
