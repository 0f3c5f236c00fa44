//! The embedded store from outside.

mod contract;
mod reopen;
