//! Checks that a directory is a data directory before a command reads it.
//!
//! A command that reads must not create a data directory: a misspelt path would then look like an empty installation.

use std::io;
use std::path::Path;

use anyhow::{Context, bail};

use super::layout::{REGISTRY_FILE, store_directory};
use crate::program;

/// Refuses a directory that is not a data directory. The error names the kind of the directory and the remedy.
pub(super) fn check(data: &Path) -> anyhow::Result<()> {
    let shown = data.display();
    let metadata = match std::fs::metadata(data) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("there is no data directory {shown}; {}", advice(data))
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
    };
    if !metadata.is_dir() {
        bail!("{shown} is a file and no data directory; name one with --data");
    }
    let entries = std::fs::read_dir(data).with_context(|| format!("cannot read {shown}"))?;
    if is_data_directory(data) {
        return Ok(());
    }
    let names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
    let inside = names.iter().map(|name| data.join(name)).find(|path| is_data_directory(path));
    let other =
        inside.or_else(|| data.parent().filter(|parent| is_data_directory(parent)).map(Path::to_owned));
    match other {
        Some(other) => {
            bail!(
                "{shown} is not a data directory, but {} is; say --data {}",
                other.display(),
                other.display()
            )
        }
        None if names.is_empty() => bail!("{shown} is not a data directory, it is empty; {}", advice(data)),
        None => bail!("{shown} is not a data directory; name one with --data, or a server with --url"),
    }
}

/// Advice for a place without a data directory.
fn advice(data: &Path) -> String {
    format!(
        "name one with --data, or a server with --url (`tacho serve --data {}` makes one, and so does `tacho import --create`)",
        program::path_word(data)
    )
}

/// Whether a directory has the files that a server creates.
fn is_data_directory(data: &Path) -> bool {
    data.join(REGISTRY_FILE).exists() || store_directory(data).is_dir()
}

#[cfg(test)]
mod tests {
    use super::super::initialise;
    use super::*;

    #[test]
    fn errors_of_a_directory_name_the_cause() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let error = |path: &Path| check(path).unwrap_err().to_string();
        assert!(error(&at("nothing")).contains("there is no data directory"));
        std::fs::write(at("file"), "x").unwrap();
        assert!(error(&at("file")).contains("is a file"));
        std::fs::create_dir(at("empty")).unwrap();
        assert!(error(&at("empty")).contains("it is empty"));
        initialise(&at("empty")).unwrap();
        check(&at("empty")).unwrap();
        let parent = error(place.path());
        assert!(parent.contains(&format!("but {} is", at("empty").display())), "{parent}");
        let store = error(&at("empty").join("store"));
        assert!(store.contains(&format!("--data {}", at("empty").display())), "{store}");
        std::fs::create_dir(at("other")).unwrap();
        std::fs::write(at("other").join("x"), "").unwrap();
        assert!(error(&at("other")).contains("is not a data directory"));
    }
}
