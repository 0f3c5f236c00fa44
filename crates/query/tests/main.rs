//! Queries against stores with known content.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[global_allocator]
static ALLOCATOR: query::CountingAllocator = query::CountingAllocator;

mod answers;
mod cached;
mod catalog;
mod deletion;
mod gapfill;
mod last_row;
mod limits;
mod page;
mod plans;
mod prepared;
mod runs;
mod scripts;
mod sessions;
mod slices;
mod support;
mod tasks;
mod wrapped;
