//! Directories of results.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::machine::utc_now;

/// `bench-runs/<UTC>-<scenario>`, relative to the working directory; with a number behind it where another run ended in the same
/// second.
pub fn default_directory(scenario: &str) -> PathBuf {
    let name = format!("{}-{scenario}", utc_now().replace(':', ""));
    free_name(Path::new("bench-runs"), &name)
}

/// Refuses a directory that has something in it, before the run whose result it could not take.
pub fn refuse_used(directory: &Path) -> Result<()> {
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Error::Options(format!(
            "{} is not empty; name a directory that does not exist with --out",
            directory.display()
        )));
    }
    Ok(())
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
}
