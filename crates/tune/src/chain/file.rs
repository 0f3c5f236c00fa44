//! The file with the layers of a chain.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bench::command::{CapacityArgs, arguments};
use serde::Deserialize;
use toml::{Table, Value};

use crate::limits::{CHAIN_FILE_BYTES_MAX, CHAIN_LAYERS_MAX};

/// The keys of a search. Each but `scenario` is the option of `tacho bench capacity` with this name.
const OF_SEARCH: [&str; 13] = [
    "scenario",
    "target",
    "slo",
    "set",
    "phase",
    "scale",
    "start",
    "rate_max",
    "step",
    "steps_max",
    "no_load",
    "server_pid",
    "workers",
];

/// The reason why a chain cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// The file cannot be read.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// The file has wrong content.
    #[error("{}: {what}", .path.display())]
    Content {
        path: PathBuf,
        /// The fault, and in which layer.
        what: String,
    },
    /// The load generator could not begin.
    #[error(transparent)]
    Bench(#[from] load::Error),
    /// The user has stopped the command.
    #[error("interrupted: the layers so far are in {}", .directory.display())]
    Interrupted {
        /// The directory of the results.
        directory: PathBuf,
    },
    /// The result could not be written.
    #[error("{} could not be written: {source}", .path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// The layers of a stack, in the order in which a message passes them.
#[derive(Debug)]
pub struct Chain {
    /// Two layers or more.
    pub layers: Vec<Layer>,
}

#[derive(Debug)]
pub struct Layer {
    /// Its name, unique in the chain.
    pub name: String,
    /// The operations of this layer that one message of the chain causes.
    pub operations_per_message: f64,
    /// Where its capacity comes from.
    pub source: Source,
}

/// The source of a layer's capacity.
#[derive(Debug)]
pub enum Source {
    /// A search, as the words of `tacho bench capacity`.
    Search(Vec<String>),
    /// The directory of a finished search.
    Bundle(PathBuf),
}

/// The file, unchanged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    layer: Vec<Table>,
}

impl Chain {
    /// Reads a file and checks each layer. Scenarios of files and bundles are relative to the working directory.
    pub fn read(path: &Path) -> Result<Self, ChainError> {
        let unreadable = |source| ChainError::File { path: path.to_owned(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(CHAIN_FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&text).map_err(|what| ChainError::Content { path: path.to_owned(), what })
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.len() as u64 > CHAIN_FILE_BYTES_MAX {
            return Err(format!("the file is longer than {CHAIN_FILE_BYTES_MAX} bytes"));
        }
        let raw: Raw = toml::from_str(text).map_err(|error| error.to_string())?;
        if !(2..=CHAIN_LAYERS_MAX).contains(&raw.layer.len()) {
            let count = raw.layer.len();
            return Err(format!("it has {count} [[layer]]; a chain has 2 to {CHAIN_LAYERS_MAX}"));
        }
        let mut names = HashSet::new();
        let mut layers = Vec::new();
        for (index, table) in raw.layer.into_iter().enumerate() {
            let layer = layer(table).map_err(|(name, what)| match name {
                Some(name) => format!("layer `{name}`: {what}"),
                None => format!("layer {}: {what}", index + 1),
            })?;
            if !names.insert(layer.name.clone()) {
                return Err(format!("two layers have the name `{}`", layer.name));
            }
            layers.push(layer);
        }
        Ok(Self { layers })
    }
}

/// A layer. The error has its name, if that is known.
fn layer(mut table: Table) -> Result<Layer, (Option<String>, String)> {
    let name = match table.remove("name") {
        Some(Value::String(name)) if !name.trim().is_empty() && !name.contains(char::is_control) => name,
        _ => return Err((None, "`name` must be a text of one line".to_owned())),
    };
    let source = |table| -> Result<(f64, Source), String> {
        let (operations_per_message, table) = ratio(table)?;
        Ok((operations_per_message, source(table)?))
    };
    match source(table) {
        Ok((operations_per_message, source)) => Ok(Layer { name, operations_per_message, source }),
        Err(what) => Err((Some(name), what)),
    }
}

fn ratio(mut table: Table) -> Result<(f64, Table), String> {
    let ratio = match table.remove("operations_per_message") {
        Some(Value::Float(ratio)) => ratio,
        Some(Value::Integer(ratio)) => ratio as f64,
        Some(_) => return Err("`operations_per_message` must be a number".to_owned()),
        None => return Err("`operations_per_message` is missing: 1.0 if each message causes one".to_owned()),
    };
    if ratio > 0.0 && ratio.is_finite() {
        return Ok((ratio, table));
    }
    Err(format!(
        "`operations_per_message` is {ratio}; it must be above zero, such as 0.01 for batches of 100"
    ))
}

fn source(mut table: Table) -> Result<Source, String> {
    if let Some(name) = table.keys().find(|name| *name != "bundle" && !OF_SEARCH.contains(&name.as_str())) {
        return Err(format!(
            "there is no key `{name}`; the keys are name, operations_per_message, bundle, {}",
            OF_SEARCH.join(", ")
        ));
    }
    match (table.remove("bundle"), table.keys().next()) {
        (Some(Value::String(path)), None) => return Ok(Source::Bundle(path.into())),
        (Some(Value::String(_)), Some(name)) => {
            return Err(format!(
                "`{name}` does not apply to a layer with `bundle`, which is a finished search"
            ));
        }
        (Some(_), _) => return Err("`bundle` must be the path of a directory".to_owned()),
        (None, _) => {}
    }
    let Some(Value::String(scenario)) = table.remove("scenario") else {
        return Err("`scenario` must be a name of `tacho bench list` or a file; or use `bundle`".to_owned());
    };
    let mut words = arguments(&table)?;
    // Words behind `--` are not options.
    words.extend(["--".to_owned(), scenario]);
    CapacityArgs::parse_words(&words).and_then(|args| args.check()).map_err(|error| error.to_string())?;
    Ok(Source::Search(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
        [[layer]]
        name = 'gateway'
        scenario = 'http-qps'
        phase = 'keep-alive'
        target = 'http://127.0.0.1:8080/'
        slo = 'p99<=20ms'
        set = ['phase.keep-alive.connections=10', 'seed=2']
        operations_per_message = 1

        [[layer]]
        name = 'store'
        operations_per_message = 0.01
        bundle = 'bench-runs/store'
    ";

    #[test]
    fn a_file_becomes_searches_and_bundles() {
        let chain = Chain::parse(GOOD).unwrap();
        let [gateway, store] = chain.layers.as_slice() else { panic!("{chain:?}") };
        assert_eq!((gateway.operations_per_message, store.operations_per_message), (1.0, 0.01));
        let Source::Search(words) = &gateway.source else { panic!("{gateway:?}") };
        for word in ["--slo=p99<=20ms", "--set=phase.keep-alive.connections=10", "--set=seed=2", "http-qps"] {
            assert!(words.iter().any(|one| one == word), "{words:?}");
        }
        assert!(matches!(&store.source, Source::Bundle(path) if path == Path::new("bench-runs/store")));
    }

    #[test]
    fn the_example_of_the_documentation_is_valid() {
        let chain = Chain::parse(include_str!("../../../../docs/tune/chain-example.toml")).unwrap();
        assert_eq!(chain.layers.len(), 4);
    }

    #[test]
    fn what_is_wrong_is_named_before_anything_runs() {
        for (old, new, expected) in [
            ("'http-qps'", "'no-such'", "layer `gateway`"),
            ("'http-qps'", "'no-such'", "no-such"),
            ("'keep-alive'\n", "'nothing'\n", "there is no such phase"),
            ("        phase = 'keep-alive'\n", "", "choose one with --phase"),
            ("        slo = 'p99<=20ms'\n", "", "this scenario has no [slo]"),
            ("p99<=20ms", "p99<=20", "it needs a unit"),
            ("'http-qps'", "'reads'", "layer `gateway`"),
            ("= 0.01", "= 0", "layer `store`: `operations_per_message` is 0"),
            ("= 0.01", "= -1.5", "`operations_per_message` is -1.5"),
            ("= 0.01", "= inf", "`operations_per_message` is inf"),
            ("= 0.01", "= nan", "`operations_per_message` is NaN"),
            ("operations_per_message = 0.01", "", "`operations_per_message` is missing"),
            ("'store'\n", "'gateway'\n", "two layers have the name `gateway`"),
            ("name = 'store'\n", "", "layer 2: `name`"),
            ("bundle =", "slo = 'p99<=1s'\nbundle =", "`slo` does not apply to a layer with `bundle`"),
            ("bundle =", "bundel =", "there is no key `bundel`"),
            ("seed=2", "sede=2", "sede"),
            ("slo =", "step = 'soon'\nslo =", "--step"),
            ("slo =", "start = -5\nslo =", "--start"),
        ] {
            let text = GOOD.replacen(old, new, 1);
            assert_ne!(text, GOOD, "{old}");
            let error = Chain::parse(&text).unwrap_err();
            assert!(error.contains(expected), "{new}: {error}");
        }
        let one = &GOOD[..GOOD.rfind("[[layer]]").unwrap()];
        assert!(Chain::parse(one).unwrap_err().contains("it has 1 [[layer]]; a chain has 2 to"));
    }
}
