//! The threads of an engine: so many that plan and compute, and as many that read.

use tokio::runtime::{Builder, Handle, Runtime};

use crate::QueryError;

/// Planning walks deep trees.
const STACK_BYTES: usize = 4 * 1024 * 1024;

pub(crate) struct Threads {
    /// Taken only when dropped.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Threads {
    pub(crate) fn start(threads: usize) -> Result<Self, QueryError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .max_blocking_threads(threads.max(1))
            .thread_name("query")
            .thread_stack_size(STACK_BYTES)
            .enable_time()
            .build()
            .map_err(|error| QueryError::Threads { message: error.to_string() })?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Threads {
    /// The last owner may be a task of these threads, where nothing may wait for them.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
