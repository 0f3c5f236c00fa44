//! Reads the answer of a finished search from the directory of its results.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use load::{Error, Result};
use serde::Deserialize;

use super::Answer;
use crate::limits::CAPACITY_FILE_BYTES_MAX;

/// The name of the file with the answer of a search and its steps.
pub const FILE: &str = "capacity.json";

/// The keys of the file that a reader of the answer needs.
#[derive(Debug, Deserialize)]
struct Finished {
    answer: Option<Answer>,
    partial: Option<String>,
}

/// The answer in a directory that `tacho bench capacity` wrote. A search that ended early has none, which is an error.
pub fn read_answer(directory: &Path) -> Result<Answer> {
    let path = directory.join(FILE);
    let mut text = String::new();
    let file = File::open(&path).map_err(Error::file(&path))?;
    file.take(CAPACITY_FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(Error::file(&path))?;
    let wrong = |what: String| Error::Options(format!("{}: {what}", path.display()));
    if text.len() as u64 > CAPACITY_FILE_BYTES_MAX {
        return Err(wrong(format!("it is longer than {CAPACITY_FILE_BYTES_MAX} bytes")));
    }
    let finished: Finished = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("it is not a result of `tacho bench capacity`: {error}")))?;
    finished.answer.ok_or_else(|| {
        let why = finished.partial.map(|why| format!(": {why}")).unwrap_or_default();
        wrong(format!("the search ended without an answer{why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_and_anything_else_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(directory.path().join(FILE), text).unwrap();
            read_answer(directory.path()).map_err(|error| error.to_string())
        };
        assert!(read_answer(directory.path()).unwrap_err().to_string().contains(FILE));
        let at_least =
            r#"{"answer": {"kind": "at_least", "rate_per_s": 800.0, "because": "--rate-max"}, "steps": []}"#;
        assert!(matches!(read(at_least), Ok(Answer::AtLeast { rate_per_s: 800.0, .. })));
        let partial = read(r#"{"answer": null, "partial": "the server died"}"#).unwrap_err();
        assert!(partial.contains("without an answer: the server died"), "{partial}");
        assert!(read("[]").unwrap_err().contains("not a result of"));
        assert!(read(&" ".repeat(CAPACITY_FILE_BYTES_MAX as usize + 1)).unwrap_err().contains("longer than"));
    }
}
