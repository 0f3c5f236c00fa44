//! What is wrong with a directory that a command shall read, and what to do.
//!
//! A command that reads must not make a directory into one of ours: a misspelt path would then look like an empty
//! installation.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, bail};
use hub::registry::Registry;

use super::store_directory;
use crate::cli::program;
use crate::server::{REGISTRY_FILE, create_directory, lock};

/// Refuses a directory that holds nothing of ours.
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
    if is_ours(data) {
        return Ok(());
    }
    let names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
    let inside = names.iter().map(|name| data.join(name)).find(|path| is_ours(path));
    let other = inside.or_else(|| data.parent().filter(|parent| is_ours(parent)).map(Path::to_owned));
    match other {
        Some(other) => {
            bail!("{shown} is no data directory, but {} is; say --data {}", other.display(), other.display())
        }
        None if names.is_empty() => bail!("{shown} is no data directory, it is empty; {}", advice(data)),
        None => bail!("{shown} is no data directory; name one with --data, or a server with --url"),
    }
}

/// What to do where there is none.
fn advice(data: &Path) -> String {
    format!(
        "name one with --data, or a server with --url (`tacho serve --data {}` makes one, and so does `tacho import --create`)",
        program::path_word(data)
    )
}

/// Whether a directory has what a server makes in it.
fn is_ours(data: &Path) -> bool {
    data.join(REGISTRY_FILE).exists() || store_directory(data).is_dir()
}

/// Makes a data directory, for a command that was asked to.
pub(crate) fn make(data: &Path) -> anyhow::Result<()> {
    create_directory(data)?;
    let (store, registry) = (store_directory(data), data.join(REGISTRY_FILE));
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&store);
    made.with_context(|| format!("cannot create {}", store.display()))?;
    if !registry.exists() {
        let _lock = lock(data)?;
        // The administrator's first password is not ours to keep: the first start of the server makes its own.
        let (_registry, _first_start) = Registry::open(&registry)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_directory_is_said() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let error = |path: &Path| check(path).unwrap_err().to_string();
        assert!(error(&at("nothing")).contains("there is no data directory"));
        std::fs::write(at("file"), "x").unwrap();
        assert!(error(&at("file")).contains("is a file"));
        std::fs::create_dir(at("empty")).unwrap();
        assert!(error(&at("empty")).contains("it is empty"));
        make(&at("empty")).unwrap();
        check(&at("empty")).unwrap();
        let parent = error(place.path());
        assert!(parent.contains(&format!("but {} is", at("empty").display())), "{parent}");
        let store = error(&at("empty").join("store"));
        assert!(store.contains(&format!("--data {}", at("empty").display())), "{store}");
        std::fs::create_dir(at("other")).unwrap();
        std::fs::write(at("other").join("x"), "").unwrap();
        assert!(error(&at("other")).contains("is no data directory"));
    }
}
