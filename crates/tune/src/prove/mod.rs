//! The proof of a change: the load of a scenario on the target as it is (A) and with the change (B), in random order.

mod arm_setup;
mod command;
mod error;
mod method;
mod order;
mod report;
mod state;

pub use error::ProveError;
pub use method::{ChangeMethod, Commands, way};
pub use order::Order;
pub use report::{Memory, Proof};
pub use state::End;

use std::io::Write;
use std::path::Path;

use bench::Context;
use bench::command::{ChangeOptions, ChangeSides, compare_change};

use arm_setup::Prover;
use report::Facts;

/// The name of the file in the directory of the results.
const PROOF_FILE: &str = "prove.json";

/// Compares the target with and without the change, and restores it in every case; with `keep` a change that is better stays. The
/// proof is printed and written before it is returned. An error means that the target is as it was.
pub fn prove(
    order: Order<'_>,
    options: &ChangeOptions,
    context: &Context,
    out: &mut dyn Write,
) -> Result<Proof, ProveError> {
    let labels = order.way.labels();
    let sides = ChangeSides { scenario: order.scenario, target: order.load_target, labels };
    let mut prover = Prover::new(&order)?;
    let compared = compare_change(&sides, options, context, &mut prover, out).map_err(ProveError::Bench)?;
    let verdict = compared.answer.as_ref().ok().and_then(|answer| answer.metrics.first());
    let end = prover.end(verdict.map(|metric| metric.verdict), order.keep);
    let directory = compared.directory.clone();
    let proof = Proof::new(
        &order,
        Facts { compared, end, memory: prover.memory(), restarted: prover.has_restarted() },
    );
    // The text comes first, so that a full disk does not lose it.
    let said = writeln!(out, "{}", proof.text());
    let written = write(&directory, &proof);
    written?;
    said.and_then(|()| writeln!(out, "result: {}", directory.join(PROOF_FILE).display()))
        .map_err(ProveError::Output)?;
    Ok(proof)
}

fn write(directory: &Path, proof: &Proof) -> Result<(), ProveError> {
    let path = directory.join(PROOF_FILE);
    let text = serde_json::to_string_pretty(proof).expect("BUG: a proof is plain JSON") + "\n";
    std::fs::write(&path, text).map_err(|source| ProveError::Write { path, source })
}
