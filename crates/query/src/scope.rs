//! What works for one statement: how much it allocates, and when it should stop.
//!
//! Every task of a statement is polled [`within`] its scope, those that operators start as well. What they allocate is counted;
//! between two polls, and where a function looks at [`check`], a statement that holds too much, whose time is over or whose client
//! has left comes to its end.

use std::any::Any;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::QueryError;
use crate::allocation::{self, Account, Entered, SLOTS};

const MIB: usize = 1024 * 1024;
/// How many times more a query may allocate than its operators may account for: a batch that one hands to the next, and what a
/// function makes, is in nobody's account, and growing copies what is accounted for.
const ALLOCATED_RATIO_MAX: usize = 2;

/// Bytes that all statements of an engine have allocated, and the most they may.
#[derive(Debug)]
pub(crate) struct TotalAllocated {
    bytes: AtomicUsize,
    max: usize,
}

impl TotalAllocated {
    /// The total for statements whose operators may hold `held_max` bytes together.
    pub(crate) fn new(held_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicUsize::new(0), max: held_max.saturating_mul(ALLOCATED_RATIO_MAX) })
    }

    /// Bytes when the statements were looked at last.
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
    /// What of the total is of this statement.
    in_total: Mutex<usize>,
    over: OnceLock<QueryError>,
    over_noticed: Notify,
    ended: OnceLock<Instant>,
    is_working: AtomicBool,
}

/// The scopes of an engine.
#[derive(Debug, Default)]
pub(crate) struct Scopes(Mutex<Vec<Weak<Scope>>>);

impl Scopes {
    /// How long a query may compute after it was ended before it counts as one that cannot be ended.
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(crate) fn add(&self, scope: &Arc<Scope>) {
        let mut scopes = self.0.lock();
        scopes.retain(|scope| scope.strong_count() > 0);
        scopes.push(Arc::downgrade(scope));
    }

    /// Those that were ended and compute on.
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
    /// When there are too many statements.
    pub(crate) fn open(held_max: usize, total: Arc<TotalAllocated>) -> Result<Arc<Self>, QueryError> {
        let account = Account::open().ok_or_else(|| QueryError::Busy {
            reason: format!("there are {SLOTS} statements, the limit of the engine"),
        })?;
        Ok(Arc::new(Self {
            account,
            max: held_max.saturating_mul(ALLOCATED_RATIO_MAX),
            total,
            in_total: Mutex::default(),
            over: OnceLock::new(),
            over_noticed: Notify::new(),
            ended: OnceLock::new(),
            is_working: AtomicBool::new(true),
        }))
    }

    /// Nobody waits for the statement any more: what works for it stops where it can.
    pub(crate) fn end(&self) {
        self.ended.get_or_init(Instant::now);
    }

    /// Whether it works on though it was ended so long ago.
    pub(crate) fn is_unended(&self, patience: Duration) -> bool {
        self.is_working.load(Ordering::Acquire) && self.ended.get().is_some_and(|at| at.elapsed() > patience)
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
        Ok(())
    }

    fn refuse(&self, max: usize, whose: &str) -> QueryError {
        let error = QueryError::OverLimit {
            what: "what the statement allocates",
            limit: format!(
                "{} MiB for {whose}, {ALLOCATED_RATIO_MAX} times what operators may hold",
                max / MIB
            ),
            remedy: "read a shorter range or fewer series, or make shorter text",
        };
        // First the error, then the word that there is one.
        let error = self.over.get_or_init(|| error).clone();
        self.over_noticed.notify_one();
        error
    }

    /// Tells the total what the statement holds now, and notices when it is too much.
    fn settle(&self) {
        let now = self.account.bytes();
        {
            let mut told = self.in_total.lock();
            if now >= *told {
                self.total.bytes.fetch_add(now - *told, Ordering::Relaxed);
            } else {
                self.total.bytes.fetch_sub(*told - now, Ordering::Relaxed);
            }
            *told = now;
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

/// Marks the end of a statement's work.
pub(crate) struct Working(pub(crate) Arc<Scope>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.is_working.store(false, Ordering::Release);
    }
}

/// Checks that the statement of this thread may go on and may allocate `more` bytes.
///
/// # Errors
/// When it may not. A statement that nobody waits for gets an error that nobody will see.
pub(crate) fn check(more: usize) -> Result<(), QueryError> {
    let Some(scope) = current() else { return Ok(()) };
    if scope.ended.get().is_some() {
        return Err(QueryError::Cancelled);
    }
    allocation::flush_small();
    scope.has_room(more)
}

/// The scope of the statement that this thread works for.
pub(crate) fn current() -> Option<Arc<Scope>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Does work of a statement on this thread.
pub(crate) fn work<T>(scope: Option<&Arc<Scope>>, work: impl FnOnce() -> T) -> T {
    let Some(scope) = scope else { return work() };
    let done = {
        let _on_thread = OnThread::enter(scope);
        work()
    };
    scope.settle();
    done
}

/// Does what no statement answers for, such as reading what is kept for others.
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

/// The thread works for a statement until this is dropped.
struct OnThread {
    before: Option<Arc<Scope>>,
    _entered: Entered,
}

impl OnThread {
    fn enter(scope: &Arc<Scope>) -> Self {
        // A thread that ends may drop what works for a statement.
        let before = CURRENT.try_with(|current| current.replace(Some(Arc::clone(scope)))).ok().flatten();
        Self { before, _entered: scope.account.enter() }
    }
}

impl Drop for OnThread {
    fn drop(&mut self) {
        let before = self.before.take();
        // What cannot be reached any more has no current scope.
        let _ = CURRENT.try_with(|current| current.replace(before));
    }
}

struct Within<T> {
    scope: Arc<Scope>,
    /// Until dropped.
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

/// Lets tasks that operators start work for the statement whose task has started them.
pub(crate) fn follow_tasks() {
    static ONCE: Once = Once::new();
    // Somebody else's tracer stays; its tasks are then counted for nobody.
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
