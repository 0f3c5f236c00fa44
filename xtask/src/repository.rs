//! The real repository: its files, which git lists, and its packages, which cargo lists.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The reason why the repository cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("cannot read {path}: {cause}")]
    Read { path: String, cause: io::Error },
    #[error("{path} is not UTF-8 text")]
    NotText { path: String },
    #[error("cannot start `{command}`: {cause}; is it installed and on the PATH?")]
    Start { command: String, cause: io::Error },
    #[error("`{command}` failed:\n{output}")]
    Failed { command: String, output: String },
    #[error("cannot understand what `cargo metadata` prints: {0}")]
    Metadata(#[from] serde_json::Error),
}

/// A package of the workspace with its direct dependencies.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// The crate's name as in its manifest.
    pub(crate) name: String,
    /// Direct dependencies of every kind.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One direct dependency.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The package that is depended on.
    pub(crate) name: String,
    /// `None` for a normal dependency, otherwise `dev` or `build`.
    pub(crate) kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A checkout on disk.
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The checkout from which this program was built.
    pub(crate) fn this() -> Repository {
        let manifest_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest_directory.parent().expect("BUG: xtask lies in a directory of the workspace");
        Repository { root: root.to_path_buf() }
    }

    /// Files that git tracks or would track: new files count, ignored files do not.
    pub(crate) fn files(&self) -> Result<Vec<String>, Problem> {
        let listed = self.run(&["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
        let mut files: Vec<String> =
            listed.split('\0').filter(|file| !file.is_empty()).map(Into::into).collect();
        files.retain(|file| self.root.join(file).is_file());
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The first components of all paths. A documented path begins with one of them.
    pub(crate) fn top_level(&self, files: &[String]) -> BTreeSet<String> {
        files.iter().filter_map(|file| file.split_once('/')).map(|(first, _)| first.to_owned()).collect()
    }

    /// Whether a clean clone has the path, or a build creates it (git ignores it). An empty directory does not count, because
    /// git does not keep it.
    pub(crate) fn has(&self, files: &[String], path: &str) -> bool {
        is_listed(files, path) || self.run(&["git", "check-ignore", "-q", path]).is_ok()
    }

    /// Reads a file that must be text.
    pub(crate) fn read(&self, path: &str) -> Result<String, Problem> {
        self.read_text(path)?.ok_or_else(|| Problem::NotText { path: path.to_owned() })
    }

    /// Reads a file; `None` if it is not UTF-8.
    pub(crate) fn read_text(&self, path: &str) -> Result<Option<String>, Problem> {
        match std::fs::read(self.root.join(path)) {
            Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
            Err(cause) => Err(Problem::Read { path: path.to_owned(), cause }),
        }
    }

    /// The packages of the workspace.
    pub(crate) fn packages(&self) -> Result<Vec<Package>, Problem> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let printed = self.run(&[&cargo, "metadata", "--no-deps", "--format-version", "1"])?;
        Ok(serde_json::from_str::<Metadata>(&printed)?.packages)
    }

    fn run(&self, command: &[&str]) -> Result<String, Problem> {
        let shown = command.join(" ");
        let output = Command::new(command[0])
            .args(&command[1..])
            .current_dir(&self.root)
            .output()
            .map_err(|cause| Problem::Start { command: shown.clone(), cause })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Problem::Failed { command: shown, output: String::from_utf8_lossy(&output.stderr).into_owned() })
    }
}

/// Whether a path is one of the files or a directory above one.
fn is_listed(files: &[String], path: &str) -> bool {
    let below = |file: &String| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    files.iter().any(|file| file == path || below(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_exists_by_the_files_below_it() {
        let files = ["docs/format/log.md".to_owned(), "README.md".to_owned()];
        for path in ["README.md", "docs", "docs/format", "docs/format/log.md"] {
            assert!(is_listed(&files, path), "{path}");
        }
        for path in ["docs/for", "docs/adr", "READ", "docs/format/log.md/x"] {
            assert!(!is_listed(&files, path), "{path}");
        }
    }
}
