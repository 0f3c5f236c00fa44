//! The application: authenticate, validate, limit, append, then fan out.
//!
//! Every door calls this crate and nothing below it. It knows devices, rows and durability; it knows no socket, no
//! packet and no HTTP type.

pub mod bulk;
pub mod caller;
pub mod clock;
pub mod history;
pub mod ingest;
pub mod live;
pub mod logins;
pub mod maintenance;
pub mod message;
pub mod metrics;
mod new_columns;
pub mod refusals;
pub mod registry;
pub mod retention;
pub mod session_token;
pub mod sql;
mod users;

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use model::limits::{IngestLimits, Portion};
use model::{PanicEndsProcess, SeriesId};
use parking_lot::Mutex;
use store::{Store, StoreError, StoreStatus};

pub use ingest::{DEAD_LETTER_TABLE, DeadLetter};
pub use message::{Kept, Message, MessageRefusal};
pub use metrics::{Door, Made, Metrics};
// The doors may not name the storage contract's crate; these words of it are part of the hub's own interface.
pub use store::backup::BackupList;
pub use store::{
    Blame, CheckReport, Durability, Finding, LatestValue, Order, Progress, ProgressWatcher, Sequence,
    Severity, ValueColumn,
};

use caller::Caller;
use clock::ReceiptClock;
use history::{History, HistoryError, HistoryRequest, Reduction, RowSink, Sink, TextHeld};
use ingest::FanOut;
use live::{Live, LiveConnection};
use logins::Logins;
use new_columns::NewColumns;
use refusals::Refusals;
use registry::Registry;
use retention::Ttls;

/// What a store can fail with, as the doors see it.
pub type IngestError = StoreError;

/// The application, shared by all doors.
pub struct Hub {
    store: Arc<dyn Store>,
    registry: Registry,
    limits: IngestLimits,
    metrics: Arc<Metrics>,
    clock: ReceiptClock,
    ttls: Ttls,
    refusals: Refusals,
    new_columns: NewColumns,
    logins: Logins,
    live: Arc<Live>,
    fan_out: Arc<FanOut>,
    fan_out_thread: Mutex<Option<JoinHandle<()>>>,
    sql: OnceLock<query::Engine>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Hub {
    /// Starts the application on an open store and registry.
    pub fn start(
        store: Arc<dyn Store>,
        registry: Registry,
        limits: IngestLimits,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Self::start_on(Portion::ALL, store, registry, limits, metrics)
    }

    /// The same on a machine whose memory allows less.
    pub fn start_on(
        memory: Portion,
        store: Arc<dyn Store>,
        registry: Registry,
        limits: IngestLimits,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let live = Arc::new(Live::on(memory, Arc::clone(&metrics)));
        let fan_out = Arc::new(FanOut::new(Arc::clone(&live)));
        store.watch(Arc::clone(&fan_out) as Arc<dyn ProgressWatcher>);
        let thread = {
            let (fan_out, store) = (Arc::clone(&fan_out), Arc::clone(&store));
            std::thread::Builder::new()
                .name("live".into())
                .spawn(move || {
                    let _guard = PanicEndsProcess::begin();
                    fan_out.run(|| store.progress());
                })
                .expect("BUG: a thread name without zero bytes and enough memory at start-up")
        };
        // It only matters where the system clock was set back since: without it the server starts all the same.
        let clock = ReceiptClock::after(registry.last_receipt().ok().flatten());
        Arc::new(Self {
            store,
            registry,
            new_columns: NewColumns::new(&limits),
            limits,
            metrics,
            clock,
            ttls: Ttls::default(),
            refusals: Refusals::new(clock::system_now()),
            logins: Logins::default(),
            live,
            fan_out,
            fan_out_thread: Mutex::new(Some(thread)),
            sql: OnceLock::new(),
        })
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Tenants, users, devices.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Which logins may be checked.
    pub fn logins(&self) -> &Logins {
        &self.logins
    }

    /// Bounds on payloads.
    pub fn limits(&self) -> &IngestLimits {
        &self.limits
    }

    /// Counters.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The store's sizes and health.
    pub fn status(&self) -> StoreStatus {
        self.store.status()
    }

    /// The text that Prometheus scrapes.
    pub fn metrics_text(&self) -> String {
        self.metrics.render(&self.status(), self.sql_status())
    }

    /// A connection of the caller for live subscribers.
    pub fn live_connection(&self, caller: &Caller) -> LiveConnection {
        self.live.connection(caller.user_id().unwrap_or_default())
    }

    /// The newest values of a series; all keys when `keys` is `None`. Reads files at worst: call it where blocking
    /// is allowed.
    pub fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError> {
        self.store.latest(series, keys)
    }

    /// The history of a series. Reads files: call it where blocking is allowed.
    pub fn history(&self, series: SeriesId, request: &HistoryRequest) -> Result<History, HistoryError> {
        history::read(&*self.store, series, request)
    }

    /// The same, value by value.
    pub fn history_into(
        &self,
        series: SeriesId,
        request: &HistoryRequest,
        sink: &mut impl Sink,
    ) -> Result<(), HistoryError> {
        history::read_into(&*self.store, series, request, sink)
    }

    /// The same, row by row.
    pub fn history_rows_into(
        &self,
        series: SeriesId,
        request: &HistoryRequest,
        sink: &mut impl RowSink,
    ) -> Result<(), HistoryError> {
        history::read_rows_into(&*self.store, series, request, sink)
    }

    /// What has become of the values of some series together, one per interval.
    pub fn reduce(
        &self,
        series: &[SeriesId],
        request: &HistoryRequest,
        text: &TextHeld,
    ) -> Result<Reduction, HistoryError> {
        Reduction::read(&*self.store, series, request, text)
    }

    /// Makes everything durable that was appended, and stops. Doors must have stopped before.
    pub fn close(&self) -> Result<(), StoreError> {
        let closed = self.store.close();
        if let Some(last) = self.clock.last() {
            // As at the start: failing costs nothing but that.
            drop(self.registry.keep_last_receipt(last));
        }
        self.fan_out.stop();
        if let Some(thread) = self.fan_out_thread.lock().take() {
            // It has not panicked: that ends the process.
            drop(thread.join());
        }
        closed
    }
}
