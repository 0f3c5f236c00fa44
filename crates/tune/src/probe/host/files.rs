//! Access to the files of the host.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// The files of a host. The probe sees the host through this trait only.
pub trait HostFiles {
    /// The text of a file with an absolute path such as `/proc/meminfo`.
    fn read(&self, path: &str) -> io::Result<String>;

    /// The names in a directory, sorted. A directory that cannot be read has none.
    fn list(&self, path: &str) -> Vec<String>;

    /// Writes a text into a file that exists, such as one of `/proc/sys`.
    fn write(&self, path: &str, text: &str) -> io::Result<()>;
}

/// The files below a directory: `/` for this machine, another one in tests.
#[derive(Debug, Clone)]
pub struct HostRoot(PathBuf);

impl HostRoot {
    /// The files below a directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

impl HostFiles for HostRoot {
    fn read(&self, path: &str) -> io::Result<String> {
        // A name of a device or a counter can hold any bytes.
        fs::read(self.path(path)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(self.path(path))?;
        // One write: the kernel takes each as a value of its own.
        file.write_all(format!("{text}\n").as_bytes())
    }
}
