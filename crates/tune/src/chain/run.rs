//! Measures the layers of a chain one after the other.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use bench::Context;
use bench::capacity::{Answer, read_answer};
use bench::command::{CapacityArgs, search_capacity, stop_on_signals};
use bench::report::refuse_used;
use load::result::write_whole;

use super::report::{ChainReport, LayerReport, Measured};
use super::{Chain, ChainError, FILE, Layer, Range, Source};

/// Searches the capacity of each layer, or reads it. A layer that fails does not stop the others. Writes the runs and
/// [`FILE`] into `directory`, and the steps as text to `progress`.
pub fn run(
    chain: &Chain,
    directory: &Path,
    context: &Context,
    progress: &mut dyn Write,
) -> Result<ChainReport, ChainError> {
    refuse_used(directory)?;
    let unwritable = |source| ChainError::Write { path: directory.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(unwritable)?;
    let stop = stop_on_signals()?;
    let mut layers = Vec::new();
    for (index, layer) in chain.layers.iter().enumerate() {
        say(progress, &format!("layer {} of {}: {}", index + 1, chain.layers.len(), layer.name))?;
        let runs = directory.join(format!("layer-{:02}", index + 1));
        let measured = match measure(layer, &runs, context, progress) {
            Ok(answer) => {
                let range = Range::of(&answer, layer.operations_per_message);
                Measured::Capacity { answer, messages_per_s: range }
            }
            Err(_) if stop.load(Ordering::Relaxed) => {
                return Err(ChainError::Interrupted { directory: directory.to_owned() });
            }
            Err(error) => {
                say(progress, &format!("layer {} failed: {error}", layer.name))?;
                Measured::Failed { because: error.to_string() }
            }
        };
        layers.push(LayerReport {
            name: layer.name.clone(),
            operations_per_message: layer.operations_per_message,
            measured,
        });
    }
    let report = ChainReport::new(layers);
    let path = directory.join(FILE);
    let text = report.json() + "\n";
    write_whole(&path, text.as_bytes()).map_err(|source| ChainError::Write { path, source })?;
    Ok(report)
}

fn measure(layer: &Layer, runs: &Path, context: &Context, progress: &mut dyn Write) -> load::Result<Answer> {
    match &layer.source {
        Source::Bundle(path) => read_answer(path),
        Source::Search(words) => {
            let out = [format!("--out={}", runs.display())];
            let args = CapacityArgs::parse_words(&[&out[..], words].concat())?;
            search_capacity(&args, context, progress)
        }
    }
}

/// Writes a line. A closed pipe is not an error: its reader needs no more output.
fn say(out: &mut dyn Write, line: &str) -> load::Result<()> {
    match writeln!(out, "{line}") {
        Err(source) if source.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(load::Error::Io { what: "writing".to_owned(), source })
        }
        _ => Ok(()),
    }
}
