//! A worker: one event loop that turns received packets into batches, and durability into acks.
//!
//! While the store has no room (it is busy, or too many batches wait for their sync) the worker continues reading from
//! connections, a little at a time, so it can answer pings and see disconnects. It pauses each connection at its first
//! message. That message stays in the connection until the store has room.

mod append;
mod connections;
mod deliver;
mod ended_sessions;
mod event_loop;
mod evict;
mod overdue;
mod parts;
mod paused;
mod read_buffer;
mod reading;
mod redistributing;
mod refusing;
mod sending;
mod slots;
mod will_queue;
mod wills;

pub(super) use event_loop::Worker;
pub(super) use parts::WorkerParts;
