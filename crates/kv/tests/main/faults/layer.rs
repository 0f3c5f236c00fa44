//! The layer in front of the C library (`faults.c`), and the processes that run under it.
//!
//! The compiler of the machine builds the layer. A test starts its own program once more under it, and controls it by a file that both
//! have: what is written to the file is seen in the memory of the layer.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

/// The control file of a process that runs under the layer.
const CONTROL: &str = "KV_FAULTS";

/// The sizes of the type `control` in `faults.c`.
const NUMBERS: usize = 9;
const PART_BYTES: usize = 64;
const DIRECTORY_BYTES: usize = 256;

/// Operations on files, as bits.
pub(super) const OPEN: i64 = 1;
pub(super) const WRITE: i64 = 2;
pub(super) const SYNC: i64 = 4;
pub(super) const TRUNCATE: i64 = 8;
pub(super) const RENAME: i64 = 16;
pub(super) const UNLINK: i64 = 32;
pub(super) const MKDIR: i64 = 64;

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is only counted.
    Count,
    /// It fails with this error of the system.
    Fail(i32),
    /// It writes half of the bytes.
    Short,
    /// It is done this number of milliseconds later.
    Late(i64),
}

/// A fault: the operations of these kinds from one number to another, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    pub(super) effect: Effect,
    pub(super) operations: i64,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// The control of the layer.
pub(super) struct Layer(File);

impl Layer {
    /// The layer under which this process runs, `None` if it does not.
    pub(super) fn of_this_process() -> Option<Self> {
        let path = std::env::var(CONTROL).ok()?;
        Some(Self(File::options().read(true).write(true).open(path).unwrap()))
    }

    /// Lets operations on the files below a directory, whose paths contain `part`, be hit from now on.
    pub(super) fn arm(&self, directory: &Path, part: &str, fault: &Fault) {
        self.put(0, 0);
        let mut texts = vec![0; PART_BYTES + DIRECTORY_BYTES];
        texts[..part.len()].copy_from_slice(part.as_bytes());
        let directory = format!("{}/", directory.display());
        texts[PART_BYTES..PART_BYTES + directory.len()].copy_from_slice(directory.as_bytes());
        self.0.write_all_at(&texts, (NUMBERS * 8) as u64).unwrap();
        let (kind, value) = match fault.effect {
            Effect::Count => (1, 0),
            Effect::Fail(error) => (2, i64::from(error)),
            Effect::Short => (3, 0),
            Effect::Late(milliseconds) => (4, milliseconds),
        };
        for (field, number) in [fault.from, fault.to, value, fault.operations, 0, 0].into_iter().enumerate() {
            self.put(1 + field, number);
        }
        self.put(0, kind);
    }

    /// Ends all faults.
    pub(super) fn disarm(&self) {
        self.put(0, 0);
    }

    /// Number of operations since the layer was armed.
    pub(super) fn counted(&self) -> i64 {
        self.number(5)
    }

    /// Number of operations that were hit since then.
    pub(super) fn hit(&self) -> i64 {
        self.number(6)
    }

    /// The kind of the last operation that was hit.
    pub(super) fn hit_operation(&self) -> i64 {
        self.number(7)
    }

    /// Number of sleeps of threads with the name `kv-writer`.
    pub(super) fn sleeps(&self) -> i64 {
        self.number(8)
    }

    fn put(&self, field: usize, number: i64) {
        self.0.write_all_at(&number.to_ne_bytes(), field as u64 * 8).unwrap();
    }

    fn number(&self, field: usize) -> i64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, field as u64 * 8).unwrap();
        i64::from_ne_bytes(bytes)
    }
}

/// Runs one test of this program in a process under the layer.
pub(super) fn run_under_layer(test: &str) {
    let files = tempfile::tempdir().unwrap();
    let status = command_under_layer(files.path(), test).status().unwrap();
    assert!(status.success(), "the process under the layer failed: {status}");
}

/// A command that runs one test of this program under the layer, whose files are in a directory.
pub(super) fn command_under_layer(files: &Path, test: &str) -> Command {
    let (library, control) = (files.join("faults.so"), files.join("control"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/main/faults/faults.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .arg("-ldl")
        .status()
        .expect("the layer needs a C compiler");
    assert!(built.success(), "the layer could not be built");
    File::create(&control).unwrap().set_len(4096).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env("LD_PRELOAD", &library).env(CONTROL, &control);
    command
}
