//! The embedded store from outside.

mod contract;
mod parts;
mod reopen;
mod support;
