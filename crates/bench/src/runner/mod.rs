//! The runner: it runs the phases of a scenario on an engine, checks the gates, and collects the results in one bundle.

pub(crate) mod command_line;
pub(crate) mod driver;
mod drivers;
mod gates;
mod host;
mod http;
pub(crate) mod interleaver;
mod ledger;
mod meter;
mod mqtt;
pub(crate) mod plan;
mod reads;
mod redis;
mod result_collector;
mod run;
mod self_hosted;
mod side;
pub(crate) mod slicing;
mod sql;
mod tcp;

pub use driver::Counts;
#[cfg(test)]
pub(crate) use drivers::driver;
pub(crate) use drivers::results;
pub(crate) use run::conclude;
pub use run::{Barrier, Options, alone, run};
pub(crate) use self_hosted::SelfHosted;
