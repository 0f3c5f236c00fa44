//! The tests of the contract and of crashes.

mod conformance;
mod crash;
mod journal;
