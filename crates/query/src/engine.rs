//! Runs queries on threads of its own, so that doors go on answering while a query computes.

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
use model::limits::{self, QueryLimits};
use parking_lot::Mutex;
use store::Store;
use tokio::sync::{mpsc, oneshot};

use crate::admission::Admission;
use crate::answer::{Answer, Batches};
use crate::batch_rows::Repeated;
use crate::memory::{QueryMemory, TotalMemory};
use crate::pieces::pieces;
use crate::plan_cache::{KnownPlan, Needs, PlanCache};
use crate::planner::Planner;
use crate::planning_session::{PlanningSession, QueryParts};
use crate::prepared::{Prepared, Resolved, parameter_types};
use crate::scope::{self, Scope, Scopes, TotalAllocated};
use crate::tables::{OpenTables, Schemas};
use crate::threads::Threads;
use crate::{QueryError, Session, postgres, statement};

/// Answers SQL about the tables of one store. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    limits: QueryLimits,
    planner: Arc<Planner>,
    plans: PlanCache,
    schemas: Arc<Schemas>,
    admission: Admission,
    memory: Arc<TotalMemory>,
    allocated: Arc<TotalAllocated>,
    scopes: Scopes,
    /// What queries have in common, but for the memory.
    environment: RuntimeEnv,
    threads: Threads,
}

/// How busy an engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineStatus {
    /// Queries that run.
    pub running: usize,
    /// Queries that wait for their turn.
    pub waiting: usize,
    /// Bytes that they hold for sorting, grouping and joining.
    pub memory_bytes: usize,
    /// Bytes that they have allocated in all, where the program's allocator is [`CountingAllocator`](crate::CountingAllocator).
    pub allocated_bytes: usize,
    /// Queries that compute on though their clients have been told that they ended.
    pub unended: usize,
}

/// What is asked.
enum Question {
    Text(String),
    Prepared(Arc<Resolved>, Vec<ScalarValue>),
}

/// A query that has its turn.
struct Query {
    memory: Arc<QueryMemory>,
    session: PlanningSession,
    parts: QueryParts,
}

/// A plan that can run.
struct Planned {
    /// Optimised.
    plan: Arc<LogicalPlan>,
    reads_names: bool,
    /// See [`postgres::headings`].
    headings: Arc<[String]>,
    /// If the same plan was used before.
    again: Option<KnownPlan>,
}

impl Engine {
    /// An engine with its threads, which live as long as it and its queries.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(store: Arc<dyn Store>, limits: QueryLimits) -> Result<Self, QueryError> {
        scope::follow_tasks();
        let threads = match limits.threads {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        };
        // There is no directory that queries may write to; what does not fit into memory is refused.
        let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
        let environment = RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build()?;
        Ok(Self(Arc::new(Inner {
            store,
            planner: Arc::new(Planner::new(&limits, threads)),
            plans: PlanCache::default(),
            schemas: Arc::default(),
            admission: Admission::new(limits.running_max, limits.waiting_max, limits.waiting_time_max),
            memory: TotalMemory::new(limits.memory_bytes_total_max),
            allocated: TotalAllocated::new(limits.memory_bytes_total_max),
            scopes: Scopes::default(),
            environment,
            threads: Threads::start(threads)?,
            limits,
        })))
    }

    /// Runs one statement. Returns when the first rows can be asked for; an error may still come with them.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn run(&self, sql: &str, session: &Session) -> Result<Answer, QueryError> {
        self.start(Question::Text(sql.to_owned()), session).await
    }

    /// Checks a statement that has parameters (`$1`, `$2`...) and says what it will give.
    ///
    /// `parameter_types` may be shorter than the number of parameters; a type that is not given follows from the place
    /// of the parameter.
    ///
    /// # Errors
    /// As [`run`](Self::run); and when the type of a parameter is neither given nor follows.
    pub async fn prepare(
        &self,
        sql: &str,
        parameter_types: &[Option<DataType>],
        session: &Session,
    ) -> Result<Prepared, QueryError> {
        let (engine, sql, session) = (self.clone(), Arc::<str>::from(sql), session.clone());
        let types = parameter_types.to_vec();
        let (answer, answered) = oneshot::channel();
        let inner = Arc::clone(&self.0);
        let timeout = session.timeout(inner.limits.timeout);
        let scope = self.0.open_scope()?;
        let mut task = self.0.threads.spawn(timeout, &scope, async move {
            let turn = inner.admission.enter().await?;
            let resolved = inner.resolve_prepared(&sql, &types, &inner.query(session))?;
            drop(turn);
            // Nobody may wait any more, which is no error.
            drop(answer.send(Prepared::new(engine, resolved)));
            Ok(())
        });
        task.first(answered).await
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

    pub(crate) async fn run_prepared(
        &self,
        resolved: Arc<Resolved>,
        parameters: Vec<ScalarValue>,
        session: &Session,
    ) -> Result<Answer, QueryError> {
        self.start(Question::Prepared(resolved, parameters), session).await
    }

    async fn start(&self, question: Question, session: &Session) -> Result<Answer, QueryError> {
        let (opened, opening) = oneshot::channel();
        let (batches, ready) = mpsc::channel(limits::QUERY_BATCHES_WAITING_MAX);
        let (inner, session) = (Arc::clone(&self.0), session.clone());
        let timeout = session.timeout(inner.limits.timeout);
        let scope = self.0.open_scope()?;
        let work = async move { inner.answer(question, session, opened, batches).await };
        let mut task = self.0.threads.spawn(timeout, &scope, work);
        let (schema, headings) = task.first(opening).await?;
        Ok(Answer { schema, headings, batches: Batches::new(ready, task, scope) })
    }
}

impl Inner {
    fn open_scope(&self) -> Result<Arc<Scope>, QueryError> {
        let scope = Scope::open(self.limits.memory_bytes_max, Arc::clone(&self.allocated))?;
        self.scopes.add(&scope);
        Ok(scope)
    }

    fn query(&self, session: Session) -> Query {
        let total = Arc::clone(&self.memory);
        let memory = Arc::new(QueryMemory::new(self.limits.memory_bytes_max, total));
        let environment = RuntimeEnv { memory_pool: Arc::clone(&memory) as _, ..self.environment.clone() };
        let tables = OpenTables::new(Arc::clone(&self.store), Arc::clone(&self.schemas), session);
        let parts =
            QueryParts { tables: Arc::new(tables), runtime: Arc::new(environment), started_at: Utc::now() };
        Query { memory, session: PlanningSession::new(Arc::clone(&self.planner), parts.clone()), parts }
    }

    /// The whole of a query. Errors of the plan come before `opened`, others after it.
    async fn answer(
        &self,
        question: Question,
        session: Session,
        opened: oneshot::Sender<(SchemaRef, Arc<[String]>)>,
        batches: mpsc::Sender<RecordBatch>,
    ) -> Result<(), QueryError> {
        let _turn = self.admission.enter().await?;
        let mut query = self.query(session);
        let planned = match question {
            Question::Text(sql) => self.plan(&sql, &query)?,
            Question::Prepared(resolved, parameters) => {
                let known = self.known(&resolved, &query)?;
                let plan = LogicalPlan::clone(&known.plan).with_param_values(parameters)?;
                Planned {
                    plan: Arc::new(self.planner.optimize(plan, query.parts.started_at)?),
                    reads_names: known.reads_names,
                    headings: known.headings,
                    again: None,
                }
            }
        };
        let batch_rows = Repeated::of(&planned.plan)?.batch_rows(self.limits.batch_rows.max(1));
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
            for piece in pieces(batch)? {
                if batches.send(piece).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn plan(&self, sql: &str, query: &Query) -> Result<Planned, QueryError> {
        let (known, is_again) = match self.plans.find(sql) {
            Some(known) if known.fits(&query.parts.tables)? => (known, true),
            _ => {
                let known = self.resolve(sql, query)?;
                if Repeated::of(&known.plan)?.may_be_kept() {
                    self.plans.keep(sql, known.clone());
                }
                (known, false)
            }
        };
        let (reads_names, headings) = (known.reads_names, Arc::clone(&known.headings));
        if !known.optimized {
            let plan = self.planner.optimize(Arc::unwrap_or_clone(known.plan), query.parts.started_at)?;
            return Ok(Planned { plan: Arc::new(plan), reads_names, headings, again: None });
        }
        Ok(Planned { plan: Arc::clone(&known.plan), reads_names, headings, again: is_again.then_some(known) })
    }

    /// Operators over the tables as they are now.
    async fn operators(
        &self,
        planned: &Planned,
        query: &Query,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        if let Some(again) = &planned.again
            && let Some(operators) = again.operators(&query.parts.tables)?
        {
            return Ok(operators);
        }
        let operators = self.planner.choose(&planned.plan, &query.session).await?;
        if let Some(again) = &planned.again {
            again.keep_operators(&operators)?;
        }
        Ok(operators)
    }

    fn resolve(&self, sql: &str, query: &Query) -> Result<KnownPlan, QueryError> {
        let statement = statement::parse(sql)?;
        let headings = postgres::headings(&statement);
        let plan = self.planner.resolve(statement, &[], &query.session)?;
        let needs = Needs::of(&plan)?;
        // An EXPLAIN shows what the optimiser does at that moment.
        if needs.asks_time() || matches!(plan, LogicalPlan::Explain(_)) {
            return Ok(needs.known(Arc::new(plan), headings, false));
        }
        let plan = self.planner.optimize(plan, query.parts.started_at)?;
        Ok(needs.known(Arc::new(plan), headings, true))
    }

    fn resolve_prepared(
        &self,
        sql: &Arc<str>,
        types: &[Option<DataType>],
        query: &Query,
    ) -> Result<Resolved, QueryError> {
        let statement = statement::parse(sql)?;
        let named = statement::parameters(&statement);
        let headings = postgres::headings(&statement);
        let plan = self.planner.resolve(statement, types, &query.session)?;
        let parameter_types = parameter_types(&plan, types, &named)?;
        let schema = postgres::shown_columns(plan.schema().inner());
        let mut known = Needs::of(&plan)?.known(Arc::new(plan), Arc::clone(&headings), false);
        if known.reads_names {
            // It holds what was listed at this moment; each run lists anew.
            known.plan = Arc::default();
        }
        let (sql, given_types) = (Arc::clone(sql), types.to_vec());
        Ok(Resolved { sql, given_types, known: Mutex::new(known), headings, parameter_types, schema })
    }

    /// The plan of a prepared statement for the tables as they are now.
    fn known(&self, resolved: &Resolved, query: &Query) -> Result<KnownPlan, QueryError> {
        let known = resolved.known.lock().clone();
        if known.fits(&query.parts.tables)? {
            return Ok(known);
        }
        // Where a table has other columns than before the client still sends values of the types that it was told.
        let told: Vec<_> = resolved.parameter_types.iter().cloned().map(Some).collect();
        let types = if known.reads_names { &resolved.given_types } else { &told };
        let statement = statement::parse(&resolved.sql)?;
        let plan = self.planner.resolve(statement, types, &query.session)?;
        let column = |field: &FieldRef| (field.name().clone(), field.data_type().clone());
        let shown = postgres::shown_columns(plan.schema().inner());
        if !shown.fields().iter().map(column).eq(resolved.schema.fields().iter().map(column)) {
            return Err(QueryError::ResultChanged);
        }
        let known = Needs::of(&plan)?.known(Arc::new(plan), known.headings, false);
        if !known.reads_names {
            *resolved.known.lock() = known.clone();
        }
        Ok(known)
    }
}

impl Query {
    /// The limit that was met, where DataFusion only says that memory is short.
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
    use super::*;

    /// What is left of a statement that has run so many times.
    async fn kept_after(engine: &Engine, sql: &str, runs: usize) -> Option<String> {
        for _ in 0..runs {
            engine.run(sql, &Session::new("tester")).await.unwrap().collect().await.unwrap();
        }
        engine.0.plans.find(sql).and_then(|known| known.shown_operators())
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
            let all = query.parts.tables.open("telemetry").unwrap().schema.fields().len();
            assert_eq!(columns, all + usize::from(sql.contains("again")), "{sql}");
        }
    }

    #[tokio::test]
    async fn operators_are_kept_from_the_second_time_on_and_hold_no_snapshot() {
        let engine = Engine::new(testkit::fleet::fleet(), QueryLimits::default()).unwrap();
        for sql in [
            "SELECT device, time_bucket(INTERVAL '5 minutes', ts) AS t, avg(speed) FROM telemetry GROUP BY device, t",
            "SELECT device, last(speed, ts) FROM telemetry WHERE device LIKE 'bus%' GROUP BY device ORDER BY device",
            "SELECT ts, speed FROM telemetry WHERE device = 'bus-1' ORDER BY ts DESC LIMIT 3",
            "SELECT count(*), max(speed) FROM telemetry WHERE speed > 5",
            "SELECT speed FROM telemetry ORDER BY speed",
        ] {
            assert_eq!(kept_after(&engine, sql, 1).await, None, "{sql}");
            let kept = kept_after(&engine, sql, 1).await.expect(sql);
            assert!(kept.contains("KeptScan") && !kept.contains("StoreScan"), "{sql}: {kept}");
        }
    }

    #[tokio::test]
    async fn operators_with_a_state_of_their_own_or_other_rows_are_not_kept() {
        let engine = Engine::new(testkit::fleet::fleet(), QueryLimits::default()).unwrap();
        for sql in [
            "SELECT speed FROM telemetry ORDER BY speed LIMIT 2",
            "SELECT a.speed FROM telemetry AS a JOIN telemetry AS b ON a.device = b.device",
            "SELECT count(*) FROM telemetry WHERE ts > now() - INTERVAL '1 hour'",
            "SELECT count(*) FROM information_schema.tables",
            "SELECT count(*) FROM telemetry WHERE device = 'nobody'",
            "SELECT 1",
        ] {
            assert_eq!(kept_after(&engine, sql, 3).await, None, "{sql}");
        }
    }
}
