//! Runs queries on threads of its own, so that doors keep answering while a query computes.

use std::num::NonZero;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, SchemaRef};
use chrono::Utc;
use datafusion::common::ScalarValue;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures_util::StreamExt;
use model::MemoryPressure;
use model::limits::{self, QueryLimits};
use parking_lot::Mutex;
use store::Store;
use tokio::sync::{mpsc, oneshot};

use crate::admission::Admission;
use crate::answer::{Answer, Batches};
use crate::batch_rows::{Repeated, long_row_bytes, rows_that_fit};
use crate::memory::{QueryMemory, TotalMemory};
use crate::parameter_types::parameter_types;
use crate::plan_cache::{CachedPlan, PlanCache, PlanInputs};
use crate::planner::Planner;
use crate::planning_environment::PlanningEnvironment;
use crate::planning_session::{PlanningSession, QueryContext};
use crate::resolved_statement::ResolvedStatement;
use crate::scope::{self, Scope, Scopes, TotalAllocated};
use crate::split_batch::split_batch;
use crate::tables::{OpenTables, Schemas};
use crate::threads::Threads;
use crate::{QueryError, Session, postgres, statement};

/// Answers SQL about the tables of one store. A clone is cheap.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    store: Arc<dyn Store>,
    pub(crate) limits: QueryLimits,
    planner: Planner,
    environment: Arc<PlanningEnvironment>,
    plans: PlanCache,
    schemas: Arc<Schemas>,
    pub(crate) admission: Admission,
    memory: Arc<TotalMemory>,
    allocated: Arc<TotalAllocated>,
    scopes: Scopes,
    /// The runtime environment of all queries. Each query adds its own memory pool.
    runtime: RuntimeEnv,
    pub(crate) threads: Threads,
}

/// How busy an engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineStatus {
    pub running: usize,
    /// Queries that wait until they may run.
    pub waiting: usize,
    /// Bytes that queries hold for sorting, grouping and joining.
    pub memory_bytes: usize,
    /// Bytes that queries have allocated in all, if the program's allocator is [`CountingAllocator`](crate::CountingAllocator).
    pub allocated_bytes: usize,
    /// Queries that still compute although their clients know that they ended.
    pub unended: usize,
}

/// A statement that is to run.
enum Request {
    Text(String),
    Prepared(Arc<ResolvedStatement>, Vec<ScalarValue>),
}

/// A query that has been admitted.
struct Query {
    memory: Arc<QueryMemory>,
    session: PlanningSession,
    context: QueryContext,
}

/// A plan that can run.
struct Planned {
    /// The optimised plan.
    plan: Arc<LogicalPlan>,
    reads_names: bool,
    /// See [`postgres::headings`].
    headings: Arc<[String]>,
    /// The cached plan, if this is not its first run.
    reused: Option<CachedPlan>,
}

impl Engine {
    /// Creates an engine with its threads, which live as long as the engine and its queries.
    ///
    /// # Errors
    /// When the system refuses to start threads.
    pub fn new(store: Arc<dyn Store>, limits: QueryLimits) -> Result<Self, QueryError> {
        Self::under(Arc::default(), store, limits)
    }

    /// Like [`new`](Self::new); statements begin only while the memory of the process allows it.
    ///
    /// # Errors
    /// When the system refuses to start threads.
    pub fn under(
        pressure: Arc<MemoryPressure>,
        store: Arc<dyn Store>,
        limits: QueryLimits,
    ) -> Result<Self, QueryError> {
        scope::follow_tasks();
        let threads = match limits.threads {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        };
        // Queries may not write to any directory. A query that does not fit into memory is refused.
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build()?;
        let environment = Arc::new(PlanningEnvironment::new(&limits, threads));
        Ok(Self(Arc::new(Inner {
            store,
            planner: Planner::new(Arc::clone(&environment)),
            environment,
            plans: PlanCache::default(),
            schemas: Arc::default(),
            admission: Admission::new(limits.running_max, limits.waiting_max, limits.waiting_time_max)
                .under(Arc::clone(&pressure), query_bytes(&limits)),
            memory: TotalMemory::new(limits.memory_bytes_total_max),
            allocated: TotalAllocated::new(&limits, pressure),
            scopes: Scopes::default(),
            runtime,
            threads: Threads::start(threads, limits.running_max)?,
            limits,
        })))
    }

    /// Runs one statement. Returns when the first rows are ready; an error may still come with the rows.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn run(&self, sql: &str, session: &Session) -> Result<Answer, QueryError> {
        self.start(Request::Text(sql.to_owned()), session).await
    }

    /// How busy it is.
    pub fn status(&self) -> EngineStatus {
        let Inner { admission, memory, allocated, scopes, .. } = &*self.0;
        EngineStatus {
            running: admission.running(),
            waiting: admission.waiting(),
            memory_bytes: memory.used(),
            allocated_bytes: allocated.bytes(),
            unended: scopes.unended(),
        }
    }

    /// Resolves a statement that has parameters. See [`prepare`](Self::prepare).
    pub(crate) async fn resolve_prepared(
        &self,
        sql: &str,
        parameter_types: &[Option<DataType>],
        session: &Session,
    ) -> Result<ResolvedStatement, QueryError> {
        let sql = Arc::<str>::from(sql);
        let types = parameter_types.to_vec();
        self.planned(session, move |inner, query| inner.resolve_prepared(&sql, &types, query)).await
    }

    /// The optimised plan of a prepared statement with values for its parameters.
    pub(crate) async fn optimized_plan(
        &self,
        resolved: Arc<ResolvedStatement>,
        parameters: Vec<ScalarValue>,
        session: &Session,
    ) -> Result<LogicalPlan, QueryError> {
        let plan = move |inner: &Inner, query: &Query| {
            inner.with_parameters(&inner.prepared_plan(&resolved, query)?, parameters, query)
        };
        self.planned(session, plan).await
    }

    /// Runs a step of planning as a query: on the engine's threads, admitted, and with a limit of its time.
    async fn planned<T: Send + 'static>(
        &self,
        session: &Session,
        step: impl FnOnce(&Inner, &Query) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, QueryError> {
        let (found, finding) = oneshot::channel();
        let (inner, session) = (Arc::clone(&self.0), session.clone());
        let timeout = session.timeout(inner.limits.timeout);
        let scope = self.0.open_scope()?;
        let mut task = self.0.threads.spawn(timeout, &scope, async move {
            let permit = inner.admission.enter(session.tenant()).await?;
            let planned = step(&inner, &inner.query(session))?;
            drop(permit);
            // The caller may have left, which is not an error.
            drop(found.send(planned));
            Ok(())
        });
        task.first(finding).await
    }

    pub(crate) async fn run_prepared(
        &self,
        resolved: Arc<ResolvedStatement>,
        parameters: Vec<ScalarValue>,
        session: &Session,
    ) -> Result<Answer, QueryError> {
        self.start(Request::Prepared(resolved, parameters), session).await
    }

    async fn start(&self, request: Request, session: &Session) -> Result<Answer, QueryError> {
        let (opened, opening) = oneshot::channel();
        let (batches, ready) = mpsc::channel(limits::QUERY_BATCHES_WAITING_MAX);
        let (inner, session) = (Arc::clone(&self.0), session.clone());
        let timeout = session.timeout(inner.limits.timeout);
        let scope = self.0.open_scope()?;
        let work = async move { inner.answer(request, session, opened, batches).await };
        let mut task = self.0.threads.spawn(timeout, &scope, work);
        let (schema, headings) = task.first(opening).await?;
        Ok(Answer { schema, headings, batches: Batches::new(ready, task, scope) })
    }
}

/// What a query reserves: three quarters of its share of what all queries may allocate. Few take all of it.
fn query_bytes(limits: &QueryLimits) -> u64 {
    let all = scope::allocated_max(limits.memory_bytes_total_max) as u64;
    all / limits.running_max.max(1) as u64 / 4 * 3
}

impl Inner {
    pub(crate) fn open_scope(&self) -> Result<Arc<Scope>, QueryError> {
        let scope = Scope::open(self.limits.memory_bytes_max, Arc::clone(&self.allocated))?;
        self.scopes.add(&scope);
        Ok(scope)
    }

    fn query(&self, session: Session) -> Query {
        let total = Arc::clone(&self.memory);
        let memory = Arc::new(QueryMemory::new(self.limits.memory_bytes_max, total));
        let runtime = RuntimeEnv { memory_pool: Arc::clone(&memory) as _, ..self.runtime.clone() };
        let tables = OpenTables::new(Arc::clone(&self.store), Arc::clone(&self.schemas), session);
        let context =
            QueryContext { tables: Arc::new(tables), runtime: Arc::new(runtime), started_at: Utc::now() };
        let session = PlanningSession::new(Arc::clone(&self.environment), context.clone());
        Query { memory, session, context }
    }

    /// Runs a query from start to end. Errors of planning come before `opened`, errors of execution after it.
    async fn answer(
        &self,
        request: Request,
        session: Session,
        opened: oneshot::Sender<(SchemaRef, Arc<[String]>)>,
        batches: mpsc::Sender<RecordBatch>,
    ) -> Result<(), QueryError> {
        let _permit = self.admission.enter(session.tenant()).await?;
        let mut query = self.query(session);
        let planned = match request {
            Request::Text(sql) => self.plan(&sql, &query)?,
            Request::Prepared(resolved, parameters) => {
                let cached = self.prepared_plan(&resolved, &query)?;
                let plan = self.with_parameters(&cached, parameters, &query)?;
                Planned {
                    plan: Arc::new(plan),
                    reads_names: cached.reads_names,
                    headings: cached.headings,
                    reused: None,
                }
            }
        };
        let row_bytes = long_row_bytes(&planned.plan, &query.context.tables)?;
        let batch_rows =
            rows_that_fit(row_bytes, self.limits.memory_bytes_max, self.limits.batch_rows.max(1));
        let batch_rows = Repeated::of(&planned.plan)?.batch_rows(batch_rows);
        query.session.limit_batch_rows(batch_rows);
        let operators = self.operators(&planned, &query).await.map_err(|error| query.explain(error))?;
        let context = query.session.task_context(planned.reads_names);
        let mut rows = execute_stream(operators, context)?;
        let schema = postgres::shown_columns(&rows.schema());
        let is_renamed = !Arc::ptr_eq(&schema, &rows.schema());
        if opened.send((Arc::clone(&schema), planned.headings)).is_err() {
            return Ok(());
        }
        while let Some(batch) = rows.next().await {
            let mut batch = batch.map_err(|error| query.explain(error.into()))?;
            if is_renamed {
                batch = RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec())
                    .map_err(|error| QueryError::Bug { message: error.to_string() })?;
            }
            if batch.num_rows() == 0 {
                continue;
            }
            for piece in split_batch(batch)? {
                if batches.send(piece).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn plan(&self, sql: &str, query: &Query) -> Result<Planned, QueryError> {
        let (cached, is_reused) = match self.plans.find(query.context.tables.namespace(), sql) {
            Some(cached) if cached.is_valid(&query.context.tables)? => (cached, true),
            _ => {
                let cached = self.resolve(sql, query)?;
                if Repeated::of(&cached.plan)?.may_be_cached() {
                    self.plans.insert(query.context.tables.namespace(), sql, cached.clone());
                }
                (cached, false)
            }
        };
        let (reads_names, headings) = (cached.reads_names, Arc::clone(&cached.headings));
        if !cached.optimized {
            let plan = self.planner.optimize(Arc::unwrap_or_clone(cached.plan), query.context.started_at)?;
            return Ok(Planned { plan: Arc::new(plan), reads_names, headings, reused: None });
        }
        let plan = Arc::clone(&cached.plan);
        Ok(Planned { plan, reads_names, headings, reused: is_reused.then_some(cached) })
    }

    /// Returns the operators over the tables as they are now.
    async fn operators(
        &self,
        planned: &Planned,
        query: &Query,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        if let Some(reused) = &planned.reused
            && let Some(operators) = reused.operators(&query.context.tables)?
        {
            return Ok(operators);
        }
        let operators = self.planner.choose_operators(&planned.plan, &query.session).await?;
        if let Some(reused) = &planned.reused {
            reused.cache_operators(&operators)?;
        }
        Ok(operators)
    }

    fn resolve(&self, sql: &str, query: &Query) -> Result<CachedPlan, QueryError> {
        let statement = statement::parse(sql)?;
        let headings = postgres::headings(&statement);
        let plan = self.planner.resolve(statement, &[], &query.session)?;
        let inputs = PlanInputs::of(&plan)?;
        // EXPLAIN shows what the optimiser does at this moment.
        if inputs.asks_time() || matches!(plan, LogicalPlan::Explain(_)) {
            return Ok(inputs.cached(Arc::new(plan), headings, false));
        }
        let plan = self.planner.optimize(plan, query.context.started_at)?;
        Ok(inputs.cached(Arc::new(plan), headings, true))
    }

    fn resolve_prepared(
        &self,
        sql: &Arc<str>,
        types: &[Option<DataType>],
        query: &Query,
    ) -> Result<ResolvedStatement, QueryError> {
        let statement = statement::parse(sql)?;
        let named = statement::parameters(&statement);
        let headings = postgres::headings(&statement);
        let plan = self.planner.resolve(statement, types, &query.session)?;
        let parameter_types = parameter_types(&plan, types, &named)?;
        let schema = postgres::shown_columns(plan.schema().inner());
        let mut cached = PlanInputs::of(&plan)?.cached(Arc::new(plan), Arc::clone(&headings), false);
        if cached.reads_names {
            // The plan contains what the system tables list at this moment. Each run lists them again.
            cached.plan = Arc::default();
        }
        let (sql, given_types) = (Arc::clone(sql), types.to_vec());
        Ok(ResolvedStatement {
            sql,
            given_types,
            plan: Mutex::new(cached),
            headings,
            parameter_types,
            schema,
        })
    }

    /// Returns the optimised plan of a prepared statement with values for its parameters.
    fn with_parameters(
        &self,
        prepared: &CachedPlan,
        parameters: Vec<ScalarValue>,
        query: &Query,
    ) -> Result<LogicalPlan, QueryError> {
        let plan = LogicalPlan::clone(&prepared.plan).with_param_values(parameters)?;
        self.planner.optimize(plan, query.context.started_at)
    }

    /// Returns the plan of a prepared statement for the tables as they are now.
    fn prepared_plan(&self, resolved: &ResolvedStatement, query: &Query) -> Result<CachedPlan, QueryError> {
        let cached = resolved.plan.lock().clone();
        if cached.is_valid(&query.context.tables)? {
            return Ok(cached);
        }
        // If the columns of a table have changed, the client still sends values of the types of its first description.
        let described: Vec<_> = resolved.parameter_types.iter().cloned().map(Some).collect();
        let types = if cached.reads_names { &resolved.given_types } else { &described };
        let statement = statement::parse(&resolved.sql)?;
        let plan = self.planner.resolve(statement, types, &query.session)?;
        let column = |field: &FieldRef| (field.name().clone(), field.data_type().clone());
        let shown = postgres::shown_columns(plan.schema().inner());
        if !shown.fields().iter().map(column).eq(resolved.schema.fields().iter().map(column)) {
            return Err(QueryError::ResultChanged);
        }
        let cached = PlanInputs::of(&plan)?.cached(Arc::new(plan), cached.headings, false);
        if !cached.reads_names {
            *resolved.plan.lock() = cached.clone();
        }
        Ok(cached)
    }
}

impl Query {
    /// Adds the limit that was met, if DataFusion only reports that memory is short.
    fn explain(&self, error: QueryError) -> QueryError {
        match (error, self.memory.limit_met()) {
            (QueryError::OverLimit { what, remedy, .. }, Some(limit)) => {
                QueryError::OverLimit { what, limit: limit.to_owned(), remedy }
            }
            (error, _) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Namespace;

    use super::*;

    /// The cached operators of a statement that has run the given number of times.
    async fn cached_after(engine: &Engine, sql: &str, runs: usize) -> Option<String> {
        for _ in 0..runs {
            engine.run(sql, &Session::new("tester")).await.unwrap().collect().await.unwrap();
        }
        engine.0.plans.find(&Namespace::DEFAULT, sql).and_then(|cached| cached.shown_operators())
    }

    #[test]
    fn all_columns_of_a_table_need_no_projection() {
        let engine = Engine::new(testkit::fleet::fleet(), QueryLimits::default()).unwrap();
        for (sql, is_projected) in [
            ("SELECT * FROM telemetry WHERE speed > 5 ORDER BY ts DESC, device LIMIT 3", false),
            ("SELECT * FROM telemetry AS t OFFSET 1", false),
            ("SELECT * FROM telemetry ORDER BY speed + 1", true),
            ("SELECT *, speed AS again FROM telemetry", true),
        ] {
            let query = engine.0.query(Session::new("tester"));
            let statement = statement::parse(sql).unwrap();
            let plan = engine.0.planner.resolve(statement, &[], &query.session).unwrap();
            assert_eq!(plan.display_indent().to_string().contains("Projection"), is_projected, "{sql}");
            let columns = plan.schema().fields().len();
            let all = query.context.tables.open("telemetry").unwrap().schema.fields().len();
            assert_eq!(columns, all + usize::from(sql.contains("again")), "{sql}");
        }
    }

    #[tokio::test]
    async fn operators_are_cached_from_the_second_run_on_and_hold_no_snapshot() {
        let engine = Engine::new(testkit::fleet::fleet(), QueryLimits::default()).unwrap();
        for sql in [
            "SELECT device, time_bucket(INTERVAL '5 minutes', ts) AS t, avg(speed) FROM telemetry GROUP BY device, t",
            "SELECT device, last(speed, ts) FROM telemetry WHERE device LIKE 'bus%' GROUP BY device ORDER BY device",
            "SELECT ts, speed FROM telemetry WHERE device = 'bus-1' ORDER BY ts DESC LIMIT 3",
            "SELECT count(*), max(speed) FROM telemetry WHERE speed > 5",
            "SELECT speed FROM telemetry ORDER BY speed",
        ] {
            assert_eq!(cached_after(&engine, sql, 1).await, None, "{sql}");
            let cached = cached_after(&engine, sql, 1).await.expect(sql);
            assert!(cached.contains("ScanFingerprint") && !cached.contains("StoreScan"), "{sql}: {cached}");
        }
    }

    #[tokio::test]
    async fn operators_with_a_state_of_their_own_or_other_rows_are_not_cached() {
        let engine = Engine::new(testkit::fleet::fleet(), QueryLimits::default()).unwrap();
        for sql in [
            "SELECT speed FROM telemetry ORDER BY speed LIMIT 2",
            "SELECT a.speed FROM telemetry AS a JOIN telemetry AS b ON a.device = b.device",
            "SELECT count(*) FROM telemetry WHERE ts > now() - INTERVAL '1 hour'",
            "SELECT count(*) FROM information_schema.tables",
            "SELECT count(*) FROM telemetry WHERE device = 'nobody'",
            "SELECT 1",
        ] {
            assert_eq!(cached_after(&engine, sql, 3).await, None, "{sql}");
        }
    }
}
