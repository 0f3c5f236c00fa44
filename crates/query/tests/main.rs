//! Queries against stores with known content.

mod answers;
mod limits;
mod page;
mod plans;
mod prepared;
mod scripts;
mod sessions;
mod support;
mod wrapped;
