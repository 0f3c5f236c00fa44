//! The scope of one statement: counts what its tasks allocate, and ends them.
//!
//! Every task of a statement is polled [`within`] its scope, also the tasks that operators start. What they allocate is counted. A
//! statement ends if it holds too much, if its time is over, or if its client has left. It ends between two polls, or where a
//! function calls [`check`].

use std::any::Any;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures_util::future::BoxFuture;
use model::limits::{
    MEMORY_SAMPLE_INTERVAL, QUERY_READ_AHEAD_BYTES, QUERY_READ_AHEAD_BYTES_MIN, QueryLimits,
    STATEMENT_KEPT_BYTES,
};
use model::{MemoryLevel, MemoryPressure};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::QueryError;
use crate::allocation::{self, Account, Entered, SLOTS};

const MIB: usize = 1024 * 1024;
/// A query may allocate this many times what its operators may account for. No operator accounts for a batch on its way to the next
/// one or for the result of a function, and a buffer that grows is copied.
const ALLOCATED_RATIO_MAX: usize = 2;
/// A job reads ahead this part of what its statement may allocate.
const READ_AHEAD_SHARE: usize = 32;

/// The bytes that all statements of an engine have allocated, and their limit.
#[derive(Debug)]
pub(crate) struct TotalAllocated {
    bytes: AtomicUsize,
    max: usize,
    /// Bytes that reads may add to the cache of the store. They count for the statement that reads.
    cached_max: usize,
    pressure: Arc<MemoryPressure>,
}

/// What statements may allocate whose operators may hold `held_max` bytes.
pub(crate) fn allocated_max(held_max: usize) -> usize {
    held_max.saturating_mul(ALLOCATED_RATIO_MAX)
}

impl TotalAllocated {
    /// Creates the total for all statements of an engine.
    pub(crate) fn new(limits: &QueryLimits, pressure: Arc<MemoryPressure>) -> Arc<Self> {
        let cached_max = limits.read_cache_bytes_max;
        let max = allocated_max(limits.memory_bytes_total_max).saturating_add(cached_max);
        Arc::new(Self { bytes: AtomicUsize::new(0), max, cached_max, pressure })
    }

    /// The bytes, as of the last time that each statement reported.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The scope of one statement.
#[derive(Debug)]
pub(crate) struct Scope {
    account: Account,
    max: usize,
    total: Arc<TotalAllocated>,
    /// The bytes of this statement in the total.
    in_total: Mutex<usize>,
    over: OnceLock<QueryError>,
    over_noticed: Notify,
    ended: OnceLock<Instant>,
    end_noticed: Notify,
    /// The number of [`Working`]s.
    working: AtomicUsize,
}

/// The scopes of an engine.
#[derive(Debug, Default)]
pub(crate) struct Scopes(Mutex<Vec<Weak<Scope>>>);

impl Scopes {
    /// A query that computes for longer than this after its end counts as one that cannot be ended.
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(crate) fn add(&self, scope: &Arc<Scope>) {
        let mut scopes = self.0.lock();
        scopes.retain(|scope| scope.strong_count() > 0);
        scopes.push(Arc::downgrade(scope));
    }

    /// Counts the statements that were ended and still compute.
    pub(crate) fn unended(&self) -> usize {
        let scopes = self.0.lock();
        scopes.iter().filter_map(Weak::upgrade).filter(|scope| scope.is_unended(Self::PATIENCE)).count()
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Scope>>> = const { RefCell::new(None) };
}

impl Scope {
    /// Opens the scope of a new statement whose operators may hold `held_max` bytes.
    ///
    /// # Errors
    /// When the engine has too many statements.
    pub(crate) fn open(held_max: usize, total: Arc<TotalAllocated>) -> Result<Arc<Self>, QueryError> {
        let account = Account::open().ok_or_else(|| QueryError::Busy {
            reason: format!("there are {SLOTS} statements, the limit of the engine"),
        })?;
        Ok(Arc::new(Self {
            account,
            max: allocated_max(held_max).saturating_add(total.cached_max),
            total,
            in_total: Mutex::default(),
            over: OnceLock::new(),
            over_noticed: Notify::new(),
            ended: OnceLock::new(),
            end_noticed: Notify::new(),
            working: AtomicUsize::new(0),
        }))
    }

    /// Ends the statement. Its tasks stop where they can.
    pub(crate) fn end(&self) {
        self.ended.get_or_init(Instant::now);
        self.end_noticed.notify_one();
    }

    /// Ready when the statement was ended. Only one task may wait for it.
    pub(crate) async fn end_of_statement(&self) {
        while self.ended.get().is_none() {
            self.end_noticed.notified().await;
        }
    }

    /// Whether the statement was ended longer ago than `patience` and still works.
    pub(crate) fn is_unended(&self, patience: Duration) -> bool {
        self.working.load(Ordering::Acquire) > 0 && self.ended.get().is_some_and(|at| at.elapsed() > patience)
    }

    /// Ready when the statement has allocated more than it may.
    pub(crate) async fn over(&self) -> QueryError {
        loop {
            if let Some(error) = self.over.get() {
                return error.clone();
            }
            self.over_noticed.notified().await;
        }
    }

    /// Checks that the statement may allocate `more` bytes.
    fn has_room(&self, more: usize) -> Result<(), QueryError> {
        let used = self.account.bytes().saturating_add(more);
        if used > self.max {
            return Err(self.refuse(self.max, "one query"));
        }
        let others = self.total.bytes().saturating_sub(*self.in_total.lock());
        if others.saturating_add(used) > self.total.max {
            return Err(self.refuse(self.total.max, "all queries together"));
        }
        // The limits of all parts of the process leave room, but a part may take more than it counts. Before the process is killed,
        // statements pause, and if that does not help, those end that hold more than a little.
        let (pressure, used) = (&self.total.pressure, used as u64);
        if used > STATEMENT_KEPT_BYTES && pressure.is_critical_for_long() {
            return Err(self.end_over(QueryError::Memory(pressure.shortage(used))));
        }
        Ok(())
    }

    fn refuse(&self, max: usize, whose: &str) -> QueryError {
        let error = QueryError::OverLimit {
            what: "what the statement allocates",
            limit: format!(
                "{} MiB for {whose}, {ALLOCATED_RATIO_MAX} times what operators may hold and the read cache",
                max / MIB
            ),
            remedy: "read a shorter range or fewer series, or make shorter text",
        };
        self.end_over(error)
    }

    /// Ends the statement with an error for what it holds.
    fn end_over(&self, error: QueryError) -> QueryError {
        // The error is set before the waiting task is woken.
        let error = self.over.get_or_init(|| error).clone();
        self.over_noticed.notify_one();
        error
    }

    /// Reports the bytes of the statement to the total, and checks the limits.
    fn settle(&self) {
        {
            let mut reported = self.in_total.lock();
            // Threads settle at the same time. Read under the lock, an older number cannot replace a newer one.
            let now = self.account.bytes();
            if now >= *reported {
                self.total.bytes.fetch_add(now - *reported, Ordering::Relaxed);
            } else {
                self.total.bytes.fetch_sub(*reported - now, Ordering::Relaxed);
            }
            *reported = now;
        }
        // `over` returns the error to the task that waits for it.
        let _ = self.has_room(0);
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.total.bytes.fetch_sub(*self.in_total.get_mut(), Ordering::Relaxed);
    }
}

/// A statement works until the last of these is dropped.
pub(crate) struct Working(Arc<Scope>);

impl Working {
    pub(crate) fn begin(scope: &Arc<Scope>) -> Self {
        scope.working.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(scope))
    }

    /// The scope of the statement.
    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.0
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Checks that the statement of this thread may continue and may allocate `more` bytes.
///
/// # Errors
/// When it may not. If the client has left, no one sees the error.
pub(crate) fn check(more: usize) -> Result<(), QueryError> {
    let Some(scope) = current() else { return Ok(()) };
    if scope.ended.get().is_some() {
        return Err(QueryError::Cancelled);
    }
    allocation::flush_small();
    scope.has_room(more)
}

/// Like [`check`], for work that runs for long without a return to the executor: it also reports what the statement holds.
///
/// # Errors
/// The errors of [`check`].
pub(crate) fn checkpoint() -> Result<(), QueryError> {
    if let Some(scope) = current() {
        allocation::flush_small();
        scope.settle();
    }
    check(0)
}

/// Waits while the memory of the process is critically short, for a job of the statement of this thread. Others give theirs back
/// meanwhile, or the statement ends.
pub(crate) fn wait_for_memory(dropped: &AtomicBool) {
    let Some(scope) = current() else { return };
    while scope.total.pressure.level() == MemoryLevel::Critical
        && !dropped.load(Ordering::Relaxed)
        && scope.ended.get().is_none()
        && scope.has_room(0).is_ok()
    {
        std::thread::sleep(MEMORY_SAMPLE_INTERVAL);
    }
}

/// Bytes that a job of the statement of this thread reads ahead. Each scan of the statement has up to two such jobs for each thread.
pub(crate) fn read_ahead_bytes() -> usize {
    let share = current().map_or(usize::MAX, |scope| scope.max / READ_AHEAD_SHARE);
    share.clamp(QUERY_READ_AHEAD_BYTES_MIN, QUERY_READ_AHEAD_BYTES)
}

/// Returns the scope of the statement that this thread works for.
pub(crate) fn current() -> Option<Arc<Scope>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs work of a statement on this thread.
pub(crate) fn work<T>(scope: Option<&Arc<Scope>>, work: impl FnOnce() -> T) -> T {
    let Some(scope) = scope else { return work() };
    let done = {
        let _on_thread = OnThread::enter(scope);
        work()
    };
    scope.settle();
    done
}

/// Runs work that no statement pays for, such as filling a cache.
pub(crate) fn outside<T>(work: impl FnOnce() -> T) -> T {
    let _entered = allocation::leave();
    work()
}

/// Polls a future, and drops it, within the scope of a statement.
pub(crate) fn within<T>(
    scope: Arc<Scope>,
    future: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> + Send {
    Within { scope, future: Some(Box::pin(future)) }
}

/// Makes the thread work for a statement until it is dropped.
struct OnThread {
    before: Option<Arc<Scope>>,
    _entered: Entered,
}

impl OnThread {
    fn enter(scope: &Arc<Scope>) -> Self {
        // The thread local may be gone: a thread that ends can still drop work of a statement.
        let before = CURRENT.try_with(|current| current.replace(Some(Arc::clone(scope)))).ok().flatten();
        Self { before, _entered: scope.account.enter() }
    }
}

impl Drop for OnThread {
    fn drop(&mut self) {
        let before = self.before.take();
        // As above: without the thread local there is nothing to restore.
        let _ = CURRENT.try_with(|current| current.replace(before));
    }
}

struct Within<T> {
    scope: Arc<Scope>,
    /// `None` only while this is dropped.
    future: Option<BoxFuture<'static, T>>,
}

impl<T> Future for Within<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let future = this.future.as_mut().expect("BUG: it is there until dropped");
        work(Some(&this.scope), || future.as_mut().poll(context))
    }
}

impl<T> Drop for Within<T> {
    fn drop(&mut self) {
        let future = self.future.take();
        work(Some(&self.scope), || drop(future));
    }
}

/// Makes tasks that operators start work for the statement whose task starts them.
pub(crate) fn follow_tasks() {
    static ONCE: Once = Once::new();
    // If the program has set another tracer, that one stays, and such tasks count for no statement.
    ONCE.call_once(|| drop(set_join_set_tracer(&Tasks)));
}

struct Tasks;

impl JoinSetTracer for Tasks {
    fn trace_future(
        &self,
        task: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match current() {
            Some(scope) => Box::pin(within(scope, task)),
            None => task,
        }
    }

    fn trace_block(
        &self,
        task: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        match current() {
            Some(scope) => Box::new(move || work(Some(&scope), task)),
            None => task,
        }
    }
}
