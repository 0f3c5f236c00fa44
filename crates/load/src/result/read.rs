//! Reads a bundle and checks that its parts belong together.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::series::seconds_from_csv;
use super::write::{HISTOGRAMS, RESULT, SECONDS, TELEMETRY};
use super::{Bundle, Histograms, RunResult, SCHEMA, Telemetry};

/// The reason why a directory cannot be read as a bundle.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is missing or unreadable.
    #[error("{}: {source}; a bundle is the directory that `run --out` or `import` wrote", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// A file has wrong content.
    #[error("{}: {what}", .path.display())]
    Content { path: PathBuf, what: String },
}

impl Bundle {
    /// Reads the bundle in `directory`.
    pub fn read(directory: &Path) -> Result<Self, ReadError> {
        let result = read_result(&directory.join(RESULT))?;
        let histograms = parse(directory, HISTOGRAMS, Histograms::default(), Histograms::from_log)?;
        let seconds = parse(directory, SECONDS, Vec::new(), seconds_from_csv)?;
        let telemetry = parse(directory, TELEMETRY, Telemetry::default(), Telemetry::from_csv)?;
        Ok(Self { result, histograms, seconds, telemetry })
    }
}

fn read_result(path: &Path) -> Result<RunResult, ReadError> {
    let text =
        fs::read_to_string(path).map_err(|source| ReadError::File { path: path.to_owned(), source })?;
    let wrong = |what: String| ReadError::Content { path: path.to_owned(), what };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    // The version is checked first, so that a newer schema is not reported as an error in some field.
    match value["schema"].as_u64() {
        Some(schema) if schema == u64::from(SCHEMA) => {}
        Some(schema) => {
            return Err(wrong(format!("schema {schema}; this program reads schema {SCHEMA}")));
        }
        None => {
            return Err(wrong(
                "no `schema`: written before bundles had one, or by another program".to_owned(),
            ));
        }
    }
    serde_json::from_value(value).map_err(|error| wrong(error.to_string()))
}

/// Parses a file. A missing optional file gives `absent`.
fn parse<T>(
    directory: &Path,
    name: &str,
    absent: T,
    parser: impl FnOnce(&[u8]) -> Result<T, String>,
) -> Result<T, ReadError> {
    let path = directory.join(name);
    match fs::read(&path) {
        Ok(bytes) => parser(&bytes).map_err(|what| ReadError::Content { path, what }),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(absent),
        Err(source) => Err(ReadError::File { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::example;
    use super::super::{Gate, Rule};
    use super::*;

    #[test]
    fn a_bundle_read_back_is_the_same() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("bundle");
        let bundle = example();
        bundle.write(&directory).unwrap();
        assert_eq!(Bundle::read(&directory).unwrap(), bundle);
        let json = fs::read_to_string(directory.join(RESULT)).unwrap();
        assert!(!json.contains(home.path().to_str().unwrap()), "no path of the machine is in it");
    }

    #[test]
    fn what_is_not_a_bundle_says_so() {
        let home = tempfile::tempdir().unwrap();
        let error = |text: &str| {
            fs::write(home.path().join(RESULT), text).unwrap();
            Bundle::read(home.path()).unwrap_err().to_string()
        };
        assert!(error("{}").contains("no `schema`"));
        assert!(error("{\"schema\": 9}").contains("schema 9; this program reads schema 1"));
        assert!(error("{\"schema\": 1}").contains("missing field"));
        assert!(
            Bundle::read(Path::new("/nowhere"))
                .unwrap_err()
                .to_string()
                .contains("a bundle is the directory")
        );
    }

    #[test]
    fn an_edited_word_does_not_make_a_run_valid() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("bundle");
        let mut bundle = example();
        bundle.result.gates.push(Gate::new(
            "lag_p99",
            9_000.0,
            Rule::AtMost,
            100.0,
            "us",
            "the generator was late",
        ));
        bundle.result.settle();
        bundle.write(&directory).unwrap();
        let path = directory.join(RESULT);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"valid\": false"));
        fs::write(&path, text.replace("\"valid\": false", "\"valid\": true")).unwrap();
        let validity = Bundle::read(&directory).unwrap().result.validity();
        assert_eq!(validity.word(), "INVALID");
        assert!(
            validity.invalid[0].contains("lag_p99 is 9000 us, it must be at most 100 us"),
            "{validity:?}"
        );
    }
}
