//! Fails when DataFusion changes a property that our rules and operators rely on.
//!
//! `docs/query.md` states which operator relies on which property. If a test here fails after an update of DataFusion, read that
//! section, decide whether the operator is still right, and write the new property down in both places.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SortOptions};
use chrono::Utc;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::optimizer::{Analyzer, Optimizer};
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::{ConstExpr, EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, collect};
use model::limits::QueryLimits;
use model::{Batch, SeriesKey, Timestamp, ValueRef};
use store::{Durability, MemoryStore, Store, Writer};

use super::optimizer_rules;
use super::replace_input::with_input;
use crate::Session;
use crate::planner::Planner;
use crate::planning_environment::PlanningEnvironment;
use crate::planning_session::{PlanningSession, QueryContext};
use crate::statement;
use crate::tables::OpenTables;

type Rules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// The physical rules without ours.
fn datafusion_rules() -> Rules {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| rule.name() != "FilterPushdown");
    rules
}

/// A table `many` with two tags, a float and an integer.
fn store(series: usize, rows: i64) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    for number in 0..series {
        let tags = [("device", format!("d{number}")), ("line", format!("l{}", number % 2))];
        let tags: Vec<_> = tags.iter().map(|(tag, value)| (*tag, value.as_str())).collect();
        let id = store.series(&SeriesKey::new("many", &tags).unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for row in 0..rows {
            builder.field("value", ValueRef::F64(row as f64 + 0.5));
            builder.field("count", ValueRef::I64(row));
            builder.row(id, Timestamp::from_micros(1_767_225_600_000_000 + row));
        }
        builder.finish();
        store.append(&batch, Durability::Memory).unwrap();
    }
    store
}

/// Plans a statement for two threads with these physical rules.
async fn plan(
    store: &Arc<MemoryStore>,
    rules: Rules,
    sql: &str,
) -> (Arc<dyn ExecutionPlan>, PlanningSession) {
    let mut environment = PlanningEnvironment::new(&QueryLimits::default(), 2);
    environment.physical_rules = rules;
    let environment = Arc::new(environment);
    let tables = OpenTables::new(Arc::clone(store) as Arc<dyn Store>, Arc::default(), Session::new("tester"));
    let query = QueryContext {
        tables: Arc::new(tables),
        runtime: Arc::new(RuntimeEnv::default()),
        started_at: Utc::now(),
    };
    let session = PlanningSession::new(Arc::clone(&environment), query.clone());
    let planner = Planner::new(environment);
    let resolved = planner.resolve(statement::parse(sql).unwrap(), &[], &session).unwrap();
    let optimized = planner.optimize(resolved, query.started_at).unwrap();
    (planner.choose_operators(&optimized, &session).await.unwrap(), session)
}

/// The operators from the top to the scan, with the details that our rules look at.
fn operators(plan: &Arc<dyn ExecutionPlan>) -> String {
    let mut name = plan.name().to_owned();
    if let Some(stage) = plan.downcast_ref::<AggregateExec>() {
        name = format!("{name} {:?} {:?}", stage.mode(), stage.input_order_mode());
    }
    if let Some(spread) = plan.downcast_ref::<RepartitionExec>() {
        name = format!("{name} {}", spread.partitioning().to_string().split('(').next().unwrap_or_default());
    }
    let inputs: Vec<_> = plan.children().into_iter().map(operators).collect();
    match inputs.as_slice() {
        [] => name,
        [input] => format!("{name} > {input}"),
        inputs => format!("{name} > [{}]", inputs.join(", ")),
    }
}

/// The first operator of a type, from the top.
fn find<T: ExecutionPlan>(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if plan.is::<T>() {
        return Some(plan);
    }
    plan.children().into_iter().find_map(find::<T>)
}

#[test]
fn the_rules_run_in_a_known_order() {
    let names = |rules: &Rules| rules.iter().map(|rule| rule.name().to_owned()).collect::<Vec<_>>();
    let datafusion = names(&PhysicalOptimizer::new().rules);
    let known = [
        "OutputRequirements",
        "aggregate_statistics",
        "join_selection",
        "LimitedDistinctAggregation",
        "FilterPushdown",
        "WindowTopN",
        "EnsureRequirements",
        "CombinePartialFinalAggregate",
        "OptimizeAggregateOrder",
        "ProjectionPushdown",
        "OutputRequirements",
        "LimitAggregation",
        "LimitPushPastWindows",
        "HashJoinBuffering",
        "LimitPushdown",
        "TopKRepartition",
        "ProjectionPushdown",
        "PushdownSort",
        "EnsureCooperative",
        "FilterPushdown(Post)",
        "SanityCheckPlan",
    ];
    assert_eq!(datafusion, known);
    let ours = names(&optimizer_rules());
    let mut expected = ["hide_filter_casts", "keep_subtotals_apart"].map(str::to_owned).to_vec();
    expected.extend(datafusion.into_iter().filter(|name| name != "FilterPushdown"));
    expected
        .extend(["read_last_rows", "read_in_slices", "aggregate_runs", "account_memory"].map(str::to_owned));
    assert_eq!(ours, expected);
}

#[test]
fn the_logical_rules_run_in_a_known_order() {
    let analyzer: Vec<_> = Analyzer::new().rules.iter().map(|rule| rule.name().to_owned()).collect();
    assert_eq!(analyzer, ["resolve_grouping_function", "type_coercion"]);
    let optimizer: Vec<_> = Optimizer::new().rules.iter().map(|rule| rule.name().to_owned()).collect();
    let known = [
        "rewrite_set_comparison",
        "optimize_unions",
        "unions_to_filter",
        "simplify_expressions",
        "replace_distinct_aggregate",
        "eliminate_join",
        "decorrelate_predicate_subquery",
        "scalar_subquery_to_join",
        "decorrelate_lateral_join",
        "extract_equijoin_predicate",
        "eliminate_duplicated_expr",
        "eliminate_filter",
        "eliminate_cross_join",
        "eliminate_limit",
        "propagate_empty_relation",
        "filter_null_join_keys",
        "eliminate_outer_join",
        "push_down_limit",
        "push_down_filter",
        "single_distinct_aggregation_to_group_by",
        "eliminate_group_by_constant",
        "common_sub_expression_eliminate",
        "extract_leaf_expressions",
        "push_down_leaf_projections",
        "optimize_projections",
    ];
    assert_eq!(optimizer, known);
}

/// The rules match on these operators in this arrangement.
#[tokio::test]
async fn statements_have_the_operators_that_our_rules_match() {
    let (few_series, many_series) = (store(3, 30_000), store(300, 250));
    let stages =
        "AggregateExec FinalPartitioned Linear > RepartitionExec Hash > AggregateExec Partial Linear";
    let mut wrong = Vec::new();
    for (store, sql, expected) in [
        // Run aggregation replaces the first of two stages with a repartition by hash between them.
        (
            &few_series,
            "SELECT device, avg(value) FROM many GROUP BY device",
            "ProjectionExec > STAGES > StoreScan",
        ),
        (
            &few_series,
            "SELECT device, avg(value) FROM many WHERE value > 5 GROUP BY device",
            "ProjectionExec > STAGES > FilterExec > StoreScan",
        ),
        (
            &few_series,
            "SELECT device, avg(value) FROM many GROUP BY device ORDER BY device",
            "SortPreservingMergeExec > ProjectionExec > SortExec > STAGES > StoreScan",
        ),
        // A scan with one partition is repartitioned for the first stage.
        (
            &few_series,
            "SELECT line, avg(value) FROM many WHERE device = 'd1' GROUP BY line",
            "ProjectionExec > STAGES > RepartitionExec RoundRobinBatch > StoreScan",
        ),
        (&few_series, "SELECT DISTINCT device FROM many", "STAGES > StoreScan"),
        (
            &few_series,
            "SELECT device, last(value, ts) FROM many GROUP BY device",
            "ProjectionExec > STAGES > StoreScan",
        ),
        // A scan in slices is below a sort with a limit for each partition.
        (
            &many_series,
            "SELECT ts, value FROM many ORDER BY ts DESC LIMIT 10",
            "SortPreservingMergeExec > SortExec(TopK) > StoreScan",
        ),
        (
            &many_series,
            "SELECT ts, value FROM many WHERE value > 5 ORDER BY ts DESC LIMIT 10",
            "SortPreservingMergeExec > SortExec(TopK) > FilterExec > StoreScan",
        ),
        // A scan in the order of time needs no sort.
        (
            &few_series,
            "SELECT ts, value FROM many ORDER BY ts DESC LIMIT 10",
            "SortPreservingMergeExec > BufferExec > StoreScan",
        ),
        // Memory accounting goes below joins, windows and UNNEST.
        (
            &few_series,
            "SELECT a.value FROM many AS a JOIN many AS b ON a.device = b.device",
            "HashJoinExec > [CoalescePartitionsExec > StoreScan, StoreScan]",
        ),
        (
            &few_series,
            "SELECT a.value FROM many AS a JOIN many AS b ON a.value > b.value",
            "NestedLoopJoinExec > [CoalescePartitionsExec > StoreScan, StoreScan]",
        ),
        (
            &few_series,
            "SELECT sum(value) OVER () FROM many",
            "ProjectionExec > WindowAggExec > CoalescePartitionsExec > StoreScan",
        ),
        (
            &few_series,
            "SELECT sum(value) OVER (ORDER BY ts) FROM many",
            "ProjectionExec > BoundedWindowAggExec > SortPreservingMergeExec > BufferExec > StoreScan",
        ),
        (
            &few_series,
            "SELECT unnest(ARRAY[value, 1.0]) FROM many",
            "ProjectionExec > UnnestExec > ProjectionExec > StoreScan",
        ),
    ] {
        let (plan, _) = plan(store, datafusion_rules(), sql).await;
        let (found, expected) = (operators(&plan), expected.replace("STAGES", stages));
        if found != expected {
            wrong.push(format!("{sql}\n    is       {found}\n    expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Gap filling requires one partition and the order of the keys; DataFusion adds the sort.
#[tokio::test]
async fn gap_filling_gets_its_order() {
    let sql = "SELECT device, time_bucket_gapfill(INTERVAL '1 minute', ts, '2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z') AS t, avg(value) \
               FROM many GROUP BY device, t";
    let (plan, _) = plan(&store(3, 30_000), datafusion_rules(), sql).await;
    let expected = "ProjectionExec > GapFill > SortPreservingMergeExec > SortExec > AggregateExec FinalPartitioned Linear > \
                    RepartitionExec Hash > AggregateExec Partial Linear > StoreScan";
    assert_eq!(operators(&plan), expected);
}

/// A scan that reads in slices takes the condition of this sort, and finds it again by its id.
#[tokio::test]
async fn a_sort_with_a_limit_publishes_its_condition() {
    let sql = "SELECT ts, value FROM many ORDER BY ts DESC LIMIT 10";
    let store = store(300, 250);
    let (plain, _) = plan(&store, datafusion_rules(), sql).await;
    let sort = find::<SortExec>(&plain).unwrap();
    let produced = sort.dynamic_expressions_produced();
    let [condition] = produced.as_slice() else { panic!("{produced:?}") };
    let condition = condition.downcast_ref::<DynamicFilterPhysicalExpr>().unwrap();
    let by: Vec<_> = condition.children().into_iter().map(|key| key.to_string()).collect();
    assert_eq!(by, ["ts@0"]);
    // The id outlives a new input.
    let input = Arc::clone(sort.children()[0]).reset_state().unwrap();
    let over_other = with_input(sort, input).unwrap();
    let id = |sort: &Arc<dyn ExecutionPlan>| sort.dynamic_expressions_produced()[0].expression_id();
    assert!(id(sort).is_some() && id(sort) == id(&over_other));
    let (ours, _) = plan(&store, optimizer_rules(), sql).await;
    let shown = datafusion::physical_plan::displayable(&*ours).indent(false).to_string();
    assert!(shown.contains("first=newest"), "{shown}");
    // A sort without a limit has no such condition, so it can be cached.
    let (unlimited, _) =
        plan(&store, datafusion_rules(), "SELECT ts, value FROM many ORDER BY ts DESC").await;
    assert!(find::<SortExec>(&unlimited).unwrap().dynamic_expressions_produced().is_empty());
}

/// Run aggregation makes these states itself; DataFusion's last stage merges them.
#[tokio::test]
async fn aggregates_have_known_names_and_states() {
    let sql = "SELECT device, avg(value), sum(value), min(value), max(value), min(count), max(count), sum(count), \
               count(value), first(value, ts), last(value, ts) FROM many GROUP BY device";
    let (plan, _) = plan(&store(3, 30_000), datafusion_rules(), sql).await;
    let mut stage = find::<AggregateExec>(&plan).unwrap();
    while let Some(below) = find::<AggregateExec>(stage.children()[0]) {
        stage = below;
    }
    let aggregates = stage.downcast_ref::<AggregateExec>().unwrap().aggr_expr();
    let states: Vec<_> = aggregates
        .iter()
        .map(|aggregate| {
            let fields = aggregate.state_fields().unwrap();
            let types: Vec<_> = fields.iter().map(|field| field.data_type().to_string()).collect();
            format!("{}: {}", aggregate.fun().name(), types.join(", "))
        })
        .collect();
    let first_or_last = "Float64, Timestamp(µs, \"UTC\"), Boolean";
    let expected = [
        "avg: UInt64, Float64",
        "sum: Float64",
        "min: Float64",
        "max: Float64",
        "min: Int64",
        "max: Int64",
        "sum: Decimal128(38, 0)",
        "count: Int64",
        &format!("first_value: {first_or_last}"),
        &format!("last_value: {first_or_last}"),
    ];
    assert_eq!(states, expected);
}

/// The reason for the rule `keep_subtotals_apart`: DataFusion leaves the constant key out of the order above the subtotals.
#[tokio::test]
async fn a_constant_key_stays_constant_above_rollup() {
    let sql = "SELECT d, g FROM (VALUES ('a', 2), ('a', 1)) t(d, g) WHERE d = 'a' GROUP BY ROLLUP (d, g) ORDER BY d, g";
    let store = store(1, 1);
    let keys = |plan: &Arc<dyn ExecutionPlan>| {
        let sort = find::<SortExec>(plan).and_then(|sort| sort.downcast_ref::<SortExec>());
        sort.map_or(0, |sort| sort.expr().len())
    };
    let (wrong, _) = plan(&store, datafusion_rules(), sql).await;
    let (right, _) = plan(&store, optimizer_rules(), sql).await;
    assert_eq!(keys(&right), 2, "{}", operators(&right));
    assert!(keys(&wrong) < 2, "the rule may be superfluous: {}", operators(&wrong));
}

/// The reason for the rule `hide_filter_casts`: DataFusion takes the time for constant and leaves the sort out.
#[tokio::test]
async fn a_condition_on_a_day_leaves_the_time_variable() {
    let sql = "SELECT ts, value FROM many WHERE CAST(ts AS date) = date '2026-01-01' ORDER BY value, ts DESC";
    let store = store(1, 2);
    let keys = |plan: &Arc<dyn ExecutionPlan>| {
        let sort = find::<SortExec>(plan).and_then(|sort| sort.downcast_ref::<SortExec>());
        sort.map_or(0, |sort| sort.expr().len())
    };
    let (wrong, _) = plan(&store, datafusion_rules(), sql).await;
    let (right, _) = plan(&store, optimizer_rules(), sql).await;
    assert_eq!(keys(&right), 2, "{}", operators(&right));
    assert!(keys(&wrong) < 2, "the rule may be superfluous: {}", operators(&wrong));
}

/// Gap filling adds its ordering before the constants.
#[test]
fn constants_are_left_out_of_an_ordering_that_is_there() {
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![field("key"), field("time")]));
    let column = |name: &str, index| Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>;
    let options = SortOptions { descending: false, nulls_first: false };
    let by = |name, index| PhysicalSortExpr::new(column(name, index), options);
    let mut properties = EquivalenceProperties::new(schema);
    properties.add_ordering([by("key", 0), by("time", 1)]);
    properties.add_constants([ConstExpr::from(column("key", 0))]).unwrap();
    assert!(properties.ordering_satisfy([by("time", 1)]).unwrap());
    assert!(properties.ordering_satisfy([by("key", 0), by("time", 1)]).unwrap());
}

/// Cached operators run again over other inputs: they keep their properties and nothing of an execution.
#[tokio::test]
async fn operators_over_other_inputs_begin_again() {
    let sql = "SELECT device, avg(value) AS mean FROM many WHERE value > 5 GROUP BY device ORDER BY mean";
    let (plan, session) = plan(&store(3, 30_000), datafusion_rules(), sql).await;
    assert_eq!(collect(Arc::clone(&plan), session.task_context(false)).await.unwrap()[0].num_rows(), 3);
    let rows = |plan: &Arc<dyn ExecutionPlan>| plan.metrics().and_then(|metrics| metrics.output_rows());
    let mut open = vec![&plan];
    let mut kept = Vec::new();
    while let Some(operator) = open.pop() {
        let children = operator.children();
        if children.is_empty() {
            continue;
        }
        let same = children.iter().map(|child| Arc::clone(child)).collect();
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        let again = Arc::clone(operator).replace_children(same, options).unwrap();
        assert!(Arc::ptr_eq(again.properties(), operator.properties()), "{}", operator.name());
        if rows(&again).is_some_and(|rows| rows > 0) {
            kept.push(operator.name());
            assert_eq!(rows(&again.reset_state().unwrap()).unwrap_or(0), 0, "{}", operator.name());
        }
        open.extend(children);
    }
    // The cache resets this one.
    assert_eq!(kept, ["SortExec"]);
}
