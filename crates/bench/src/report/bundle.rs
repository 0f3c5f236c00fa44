//! Directories of results.

use std::fs;
use std::path::{Path, PathBuf};

use load::machine::utc_now;
use load::{Error, Result};

/// `bench-runs/<UTC>-<scenario>`, relative to the working directory, with a number if another result has that name. If
/// two processes get the same name, the second one cannot write its result and prints it on standard error.
pub fn default_directory(scenario: &str) -> PathBuf {
    let name = format!("{}-{scenario}", utc_now().replace(':', ""));
    free_name(Path::new("bench-runs"), &name)
}

/// Refuses a file, or a directory that is not empty, before the run whose result it cannot take.
pub fn refuse_used(directory: &Path) -> Result<()> {
    let what = match fs::read_dir(directory).map(|mut entries| entries.next().is_some()) {
        Ok(true) => "not empty",
        Err(_) if directory.exists() => "not a directory that can be read",
        _ => return Ok(()),
    };
    Err(Error::Options(format!(
        "{} is {what}; name a directory that does not exist with --out",
        directory.display()
    )))
}

fn free_name(parent: &Path, name: &str) -> PathBuf {
    let numbered = (2..).map(|number| parent.join(format!("{name}-{number}")));
    let mut names = std::iter::once(parent.join(name)).chain(numbered);
    names.find(|path| !path.exists()).expect("BUG: there are names without end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_end_in_one_second_do_not_take_each_others_names() {
        let parent = tempfile::tempdir().unwrap();
        for expected in ["run", "run-2", "run-3"] {
            let path = free_name(parent.path(), "run");
            assert_eq!(path, parent.path().join(expected));
            fs::create_dir(path).unwrap();
        }
    }

    #[test]
    fn a_place_that_can_take_no_result_is_refused_before_the_run() {
        let parent = tempfile::tempdir().unwrap();
        let (file, absent) = (parent.path().join("file"), parent.path().join("absent"));
        assert!(refuse_used(parent.path()).is_ok() && refuse_used(&absent).is_ok());
        fs::write(&file, "notes").unwrap();
        assert!(refuse_used(&file).unwrap_err().to_string().contains("is not a directory that can be read;"));
        assert!(refuse_used(parent.path()).unwrap_err().to_string().contains("is not empty;"));
    }
}
