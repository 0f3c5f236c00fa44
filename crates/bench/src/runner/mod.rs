//! The runner: it runs the phases of a scenario on an engine, checks the gates, and collects the results in one bundle.

mod gates;
pub(crate) mod interleaver;
mod meter;
mod observed;
mod result_collector;
mod run;
mod self_hosted;
mod side;
pub(crate) mod slicing;

pub(crate) use run::conclude;
pub use run::{Barrier, Options, alone, run};
pub(crate) use self_hosted::SelfHosted;
