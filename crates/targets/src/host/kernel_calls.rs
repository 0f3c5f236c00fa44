//! Kernels of system calls: plain calls, pipes, context switches, processes, durable writes.

use std::io::{self, PipeReader, PipeWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use tempfile::{Builder, NamedTempFile};

/// The system calls of one operation.
pub(super) const SYSCALLS: u32 = 1_000;
/// The writes and reads of one operation.
pub(super) const PAIRS: u32 = 100;
/// The round trips of one operation.
pub(super) const ROUND_TRIPS: u32 = 10;
/// The size of a message through a pipe, as in UnixBench.
const PIPE_BYTES: usize = 512;
/// The size of a durable write.
const BLOCK_BYTES: usize = 4_096;
/// A file of this size is truncated.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(super) fn syscalls() {
    for _ in 0..SYSCALLS {
        std::hint::black_box(rustix::process::getppid());
    }
}

/// Starts a process that does nothing, and waits for it.
pub(super) fn spawn() -> io::Result<u64> {
    let null = Stdio::null;
    let status = Command::new("true").stdin(null()).stdout(null()).stderr(null()).status()?;
    if status.success() { Ok(0) } else { Err(io::Error::other(format!("`true` ended with {status}"))) }
}

/// Both ends of a pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Pipe {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer })
    }

    pub(super) fn exchange(&mut self) -> io::Result<u64> {
        let mut bytes = [7; PIPE_BYTES];
        for _ in 0..PAIRS {
            self.writer.write_all(&bytes)?;
            self.reader.read_exact(&mut bytes)?;
        }
        Ok(u64::from(PAIRS) * PIPE_BYTES as u64)
    }
}

/// A thread that sends back every byte.
#[derive(Debug)]
pub(super) struct PingPong {
    to: Option<PipeWriter>,
    from: PipeReader,
    other: Option<JoinHandle<()>>,
}

impl PingPong {
    pub(super) fn new() -> io::Result<Self> {
        let (mut there, to) = io::pipe()?;
        let (from, mut back) = io::pipe()?;
        let other = thread::spawn(move || {
            let mut token = [0];
            while there.read_exact(&mut token).is_ok() && back.write_all(&token).is_ok() {}
        });
        Ok(Self { to: Some(to), from, other: Some(other) })
    }

    pub(super) fn round_trips(&mut self) -> io::Result<u64> {
        let to = self.to.as_mut().ok_or_else(|| io::Error::other("BUG: the pipe is open until the drop"))?;
        let mut token = [1];
        for _ in 0..ROUND_TRIPS {
            to.write_all(&token)?;
            self.from.read_exact(&mut token)?;
        }
        Ok(0)
    }
}

impl Drop for PingPong {
    fn drop(&mut self) {
        // Closing our end makes the thread end.
        self.to = None;
        if let Some(other) = self.other.take() {
            let _ = other.join();
        }
    }
}

/// A file that grows by durable blocks and is removed at the end. Its name is unique, because several threads have
/// files in one directory.
#[derive(Debug)]
pub(super) struct FileSync {
    file: NamedTempFile,
    length: u64,
}

impl FileSync {
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        let file = Builder::new().prefix("tacho-bench-fsync-").tempfile_in(directory)?;
        Ok(Self { file, length: 0 })
    }

    pub(super) fn append(&mut self) -> io::Result<u64> {
        let file = self.file.as_file_mut();
        if self.length >= FILE_BYTES_MAX {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            self.length = 0;
        }
        file.write_all(&[0x5a; BLOCK_BYTES])?;
        file.sync_data()?;
        self.length += BLOCK_BYTES as u64;
        Ok(BLOCK_BYTES as u64)
    }
}
