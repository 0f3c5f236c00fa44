//! The evaluation of alarm rules, on a thread of its own.
//!
//! The thread takes durable rows from its tap, and evaluates them in the order in which they were appended. It commits what happens
//! to alarms together with the states of their devices, so that a crash loses both or neither, and notifies the subscribers when
//! that is durable. Every few seconds it stores the other states that have changed, and then the time up to which it has evaluated
//! everything.
//!
//! Invariants:
//! 1. After a start the thread reads the rows again that came after that time, and some from before. A row that was evaluated changes
//!    nothing: its values are not newer than those of the state ([`sensors::alarm_rules::Values::put`]).
//! 2. A state is stored no later than the alarms that it made.
//! 3. Rows are evaluated only after they are durable.

mod boot;
mod checkpoint;
mod commit;
mod device;
mod event_loop;
mod inbox;
mod limits;
mod reread;
mod rule_action;
mod rule_book;
mod shared;
mod state_record;
mod thread;

pub(crate) use device::FIELDS;
pub(crate) use inbox::Inbox;
pub(crate) use rule_book::RuleBook;
pub(crate) use shared::Shared;
pub(crate) use thread::RuleThread;
