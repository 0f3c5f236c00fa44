//! The files of a self-signed certificate: `tacho tls self-signed` makes them, and `tacho demo --tls`.

mod certificates;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The files of an authority and a certificate that it signed.
#[derive(Debug)]
pub(crate) struct SelfSigned {
    /// The certificate of the authority, which clients trust.
    pub(crate) ca: PathBuf,
    /// The certificate of the server.
    pub(crate) certificate: PathBuf,
    /// The key of the server.
    pub(crate) key: PathBuf,
}

impl SelfSigned {
    fn in_directory(directory: &Path) -> Self {
        let [ca, certificate, key] =
            ["ca.pem", "server.pem", "server-key.pem"].map(|name| directory.join(name));
        Self { ca, certificate, key }
    }

    /// Makes the files for these names and addresses. It replaces none.
    pub(crate) fn make(directory: &Path, names: &[String]) -> anyhow::Result<Self> {
        let made = certificates::make(names).context("cannot make a certificate for these names")?;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let directory =
            directory.canonicalize().with_context(|| format!("cannot read {}", directory.display()))?;
        let files = Self::in_directory(&directory);
        for (path, text, mode) in [
            (&files.ca, &made.ca, 0o644),
            (&files.certificate, &made.certificate, 0o644),
            (&files.key, &made.key, 0o600),
        ] {
            write_new(path, text, mode).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(files)
    }

    /// The files of the directory, or new ones if it has none.
    pub(crate) fn find_or_make(directory: &Path, names: &[String]) -> anyhow::Result<Self> {
        match directory.canonicalize() {
            Ok(found) if Self::in_directory(&found).certificate.exists() => Ok(Self::in_directory(&found)),
            _ => Self::make(directory, names),
        }
    }
}

fn write_new(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
}
