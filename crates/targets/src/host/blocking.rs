//! The machine itself: small kernels of work, repeated for a time by one or several threads.
//!
//! The kernels resemble those of UnixBench in kind (integer, floating point, pipes, context switches, processes, system
//! calls), but not in code, so no figure here is a UnixBench index. fio measures the disks ([`fio`]), because its
//! figures are widely known.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use clients::CancelHandle;
use load::dataset::Random;
use load::protocol::OperationChoice;
use load::protocol::{Blocking, Done, DueTime, Failure};

use super::compute::Compute;
use super::kernel_calls::{FileSync, PingPong, Pipe};
use super::memory::Memory;
use super::pool::{Pool, PoolRegistry};
use super::{compute, kernel_calls, memory};

/// The domain of the random numbers of this driver.
const DOMAIN: u64 = 0x405;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// Integer arithmetic, records, comparisons and copies of text.
    Integer,
    /// Floating point: polynomials, sines, exponentials, a small matrix.
    Float,
    /// Hash table and byte hash.
    Hash,
    /// Reads a large buffer in order.
    MemoryRead,
    /// Writes a large buffer in order.
    MemoryWrite,
    /// Copies one half of a large buffer to the other.
    MemoryCopy,
    /// Dependent reads, all over a large buffer.
    MemoryLatency,
    /// The cheapest system call.
    Syscall,
    /// 512 bytes through a pipe within one thread.
    Pipe,
    /// A token through pipes to another thread and back: two context switches.
    ContextSwitch,
    /// Starts a process and waits for its end.
    Spawn,
    /// Appends 4 KiB to a file, with fdatasync.
    Fsync,
}

impl Kernel {
    /// All kernels.
    pub const ALL: [Self; 12] = [
        Self::Integer,
        Self::Float,
        Self::Hash,
        Self::MemoryRead,
        Self::MemoryWrite,
        Self::MemoryCopy,
        Self::MemoryLatency,
        Self::Syscall,
        Self::Pipe,
        Self::ContextSwitch,
        Self::Spawn,
        Self::Fsync,
    ];

    /// The amount and the unit of work of one operation. Operations are long enough to make the cost of timing
    /// negligible.
    pub fn work(self) -> (f64, &'static str) {
        match self {
            Self::Integer => (f64::from(compute::ROUNDS), "rounds of integer work"),
            Self::Float => (f64::from(compute::ROUNDS), "rounds of floating-point work"),
            Self::Hash => (f64::from(compute::ROUNDS), "table look-ups"),
            Self::MemoryRead | Self::MemoryWrite => (memory::BUFFER_BYTES as f64, "bytes"),
            Self::MemoryCopy => (memory::BUFFER_BYTES as f64, "bytes read and written"),
            Self::MemoryLatency => (f64::from(memory::CHASES), "dependent reads"),
            Self::Syscall => (f64::from(kernel_calls::SYSCALLS), "system calls"),
            Self::Pipe => (f64::from(kernel_calls::PAIRS), "writes with their reads"),
            Self::ContextSwitch => (f64::from(kernel_calls::ROUND_TRIPS), "round trips"),
            Self::Spawn => (1.0, "processes"),
            Self::Fsync => (1.0, "durable 4-KiB appends"),
        }
    }

    /// The meaning of a rate of operations, as a sentence.
    pub fn sentence(self, name: &str, per_s: f64, threads: u32) -> String {
        let (amount, unit) = self.work();
        let rate = per_s * amount;
        let copies = if threads == 1 { "one thread".to_owned() } else { format!("{threads} threads") };
        match self {
            Self::MemoryRead | Self::MemoryWrite | Self::MemoryCopy => {
                format!("{name}: {:.2} GB of {unit} per second by {copies}.", rate / 1e9)
            }
            Self::MemoryLatency if rate > 0.0 => {
                format!("{name}: {:.1} ns per dependent read ({copies}).", 1e9 * f64::from(threads) / rate)
            }
            _ => format!("{name}: {rate:.0} {unit} per second by {copies}."),
        }
    }
}

/// The kernels of a run.
#[derive(Debug)]
pub struct Host {
    kernels: Vec<Kernel>,
    choice: OperationChoice,
    directory: PathBuf,
    memory: Arc<Pool<Memory>>,
    files: Arc<Pool<FileSync>>,
}

/// One thread with the data of its kernels, created on first use.
#[derive(Debug)]
pub struct Session {
    number: u32,
    random: Random,
    compute: Option<Box<Compute>>,
    pipe: Option<Pipe>,
    ping_pong: Option<PingPong>,
}

impl Host {
    /// Takes the kernels by class number. `fsync` creates its files in `directory` and removes them with their last
    /// user.
    pub fn new(kernels: Vec<Kernel>, choice: OperationChoice, directory: &Path) -> Self {
        static MEMORY: PoolRegistry<(), Memory> = PoolRegistry::new();
        static FILES: PoolRegistry<PathBuf, FileSync> = PoolRegistry::new();
        let directory = directory.to_owned();
        let (memory, files) = (MEMORY.of(()), FILES.of(directory.clone()));
        Self { kernels, choice, directory, memory, files }
    }

    fn work(&self, session: &mut Session, kernel: Kernel) -> std::io::Result<u64> {
        let bytes = memory::BUFFER_BYTES as u64;
        match kernel {
            Kernel::Integer | Kernel::Float | Kernel::Hash => {
                let compute = session.compute.get_or_insert_with(Box::default);
                match kernel {
                    Kernel::Integer => compute.integer(),
                    Kernel::Float => compute.float(),
                    _ => compute.hash(),
                }
                Ok(0)
            }
            Kernel::MemoryRead | Kernel::MemoryWrite | Kernel::MemoryCopy | Kernel::MemoryLatency => {
                self.memory.with_item(
                    session.number,
                    || Ok(Memory::new(session.number)),
                    |memory| {
                        match kernel {
                            Kernel::MemoryRead => memory.read(),
                            Kernel::MemoryWrite => memory.write(),
                            Kernel::MemoryCopy => memory.copy(),
                            _ => memory.chase(),
                        }
                        Ok(if kernel == Kernel::MemoryLatency { 0 } else { bytes })
                    },
                )
            }
            Kernel::Syscall => {
                kernel_calls::syscalls();
                Ok(0)
            }
            Kernel::Pipe => made(&mut session.pipe, Pipe::new)?.exchange(),
            Kernel::ContextSwitch => made(&mut session.ping_pong, PingPong::new)?.round_trips(),
            Kernel::Spawn => kernel_calls::spawn(),
            Kernel::Fsync => {
                self.files.with_item(session.number, || FileSync::new(&self.directory), FileSync::append)
            }
        }
    }
}

fn made<T>(place: &mut Option<T>, make: impl FnOnce() -> std::io::Result<T>) -> std::io::Result<&mut T> {
    if place.is_none() {
        *place = Some(make()?);
    }
    place.as_mut().ok_or_else(|| std::io::Error::other("BUG: it was just made"))
}

impl Blocking for Host {
    type Session = Session;

    fn open(&self, number: u32) -> Result<Session, String> {
        Ok(Session {
            number,
            random: Random::keyed(1, DOMAIN, number.into()),
            compute: None,
            pipe: None,
            ping_pong: None,
        })
    }

    fn reopen(&self, session: &mut Session) -> Result<(), String> {
        *session = self.open(session.number)?;
        Ok(())
    }

    fn cancel_handle(&self, _: &Session) -> Option<CancelHandle> {
        None
    }

    fn next(&self, session: &mut Session) -> Option<u16> {
        self.choice.next(session.number, &mut session.random)
    }

    fn run(&self, session: &mut Session, class: u16, _: DueTime) -> Result<Done, Failure> {
        let kernel = self.kernels[usize::from(class)];
        match self.work(session, kernel) {
            Ok(bytes) => Ok(Done { bytes_in: bytes, ..Done::default() }),
            Err(error) => Err(Failure::Refused(format!("{kernel:?}: {error}"))),
        }
    }

    fn reseed(&self, session: &mut Session, seed: u64) {
        session.random = Random::keyed(seed, DOMAIN, session.number.into());
    }

    fn close(&self, _: &mut Session) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_does_its_work() {
        let directory = tempfile::tempdir().unwrap();
        let choice = OperationChoice::of_all(&[1; 12]).unwrap();
        let host = Host::new(Kernel::ALL.to_vec(), choice, directory.path());
        let mut session = host.open(0).unwrap();
        let due = DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 };
        for (class, kernel) in Kernel::ALL.iter().enumerate() {
            let done =
                host.run(&mut session, class as u16, due).unwrap_or_else(|e| panic!("{kernel:?}: {e:?}"));
            assert_eq!(
                done.bytes_in > 0,
                matches!(
                    kernel,
                    Kernel::MemoryRead
                        | Kernel::MemoryWrite
                        | Kernel::MemoryCopy
                        | Kernel::Pipe
                        | Kernel::Fsync
                )
            );
        }
        drop(host);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "its file is gone");
    }

    #[test]
    fn figures_are_told_in_their_unit() {
        let text = Kernel::MemoryLatency.sentence("chase", 100.0, 2);
        assert!(text.contains("ns per dependent read (2 threads)"), "{text}");
        assert!(Kernel::Syscall.sentence("s", 2.0, 1).contains("2000 system calls per second by one thread"));
    }

    #[test]
    fn two_sides_that_take_turns_append_to_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let side =
            || Host::new(vec![Kernel::Fsync], OperationChoice::of_all(&[1]).unwrap(), directory.path());
        let (a, b) = (side(), side());
        for host in [&a, &b] {
            host.run(&mut host.open(0).unwrap(), 0, DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 })
                .unwrap();
        }
        let file = std::fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 2 * 4_096);
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_of_the_operation() {
        let host = Host::new(
            vec![Kernel::Fsync],
            OperationChoice::of_all(&[1]).unwrap(),
            Path::new("/no/such/place"),
        );
        let failure =
            host.run(&mut host.open(0).unwrap(), 0, DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 });
        assert!(matches!(failure, Err(Failure::Refused(why)) if why.contains("Fsync")));
    }
}
