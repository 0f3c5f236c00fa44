//! The parts of a worker that exist before its thread starts.

use std::io;
use std::sync::Arc;

use mio::{Poll, Token, Waker};

use super::super::worker_handle::WorkerHandle;

/// The token of the worker's own wake-ups. Tokens of connections are small slot numbers.
const WAKER: Token = Token(usize::MAX);

/// The poll of a worker, and its handle for other threads.
pub(in crate::mqtt) struct WorkerParts {
    pub(super) poll: Poll,
    pub(in crate::mqtt) handle: Arc<WorkerHandle>,
}

impl WorkerParts {
    pub(in crate::mqtt) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        Ok(Self { poll, handle: Arc::new(WorkerHandle::new(waker)) })
    }
}
