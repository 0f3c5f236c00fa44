//! Runs queries.

use std::ops::ControlFlow;

use store::{TableColumns, TagMatcher, TagPredicate};

use super::downsample::Downsample;
use super::filter::matchers;
use super::group::{common_tags, groups};
use super::merge::{Budget, merge};
use super::metric::Opened;
use super::rate::rates;
use super::read::read;
use super::window::Window;
use super::{Aggregator, Answer, Line, Metric, Query, QueryError, Selection, SubQuery, Tags, tsuid_parts};
use crate::Source;

/// Runs a query and visits the answers of its groups until the visitor returns `Break`: sub query by sub query, within one in the
/// order of the values of the tags that group.
///
/// # Errors
/// The query is wrong, a metric does not exist, the query costs more than [`limits`](super::limits) allow, or a table cannot be
/// read.
pub fn run(
    query: &Query,
    source: &dyn Source,
    visit: &mut dyn FnMut(Answer) -> ControlFlow<()>,
) -> Result<(), QueryError> {
    let plans = plans(query)?;
    // A metric that does not exist is an error before the first answer, not between two of them.
    for plan in &plans {
        plan.metric.open(source)?;
    }
    let mut budget = Budget::new(source);
    for (number, (sub, plan)) in query.queries.iter().zip(&plans).enumerate() {
        if run_one(number, sub, plan, source, &mut budget, visit)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The computations of the sub queries.
pub(super) fn plans(query: &Query) -> Result<Vec<Plan>, QueryError> {
    query.check()?;
    query.queries.iter().map(|sub| Plan::of(query, sub)).collect()
}

/// The computation of a sub query.
pub(super) struct Plan {
    pub(super) aggregator: Aggregator,
    downsample: Option<Downsample>,
    window: Window,
    pub(super) metric: Metric,
    /// The tags of the series that the sub query names.
    named: Option<Vec<Tags>>,
}

impl Plan {
    fn of(query: &Query, sub: &SubQuery) -> Result<Self, QueryError> {
        if sub.aggregator.is_empty() {
            return Err(QueryError::invalid("Missing the aggregation function"));
        }
        let aggregator = Aggregator::parse(&sub.aggregator)?;
        let parse = |text: &String| Downsample::parse(text, query.zone, query.use_calendar);
        let downsample = sub.downsample.as_ref().filter(|text| !text.is_empty()).map(parse).transpose()?;
        let interval = downsample.map_or(0, |downsample| downsample.millis());
        let (metric, named) = match &sub.selection {
            Selection::Metric(metric) if metric.name().is_empty() => return Err(nothing_selected()),
            Selection::Metric(metric) => (metric.clone(), None),
            Selection::Tsuids(tsuids) => {
                let (metric, named) = of_tsuids(tsuids)?;
                (metric, Some(named))
            }
        };
        let window = Window::new(query.start, query.end, interval);
        Ok(Self { aggregator, downsample, window, metric, named })
    }

    /// The conditions on the series that the sub query reads. A series satisfies all conditions of one of the lists.
    pub(super) fn selections(&self, sub: &SubQuery, metric: &Opened<'_>) -> Vec<Vec<TagMatcher>> {
        if let Some(named) = &self.named {
            return named.iter().map(|tags| exactly(metric.table.columns(), tags)).collect();
        }
        let mut matchers = matchers(&sub.filters);
        if sub.explicit_tags {
            matchers.extend(no_other_tags(metric.table.columns(), sub));
        }
        vec![matchers]
    }
}

fn nothing_selected() -> QueryError {
    QueryError::invalid("Missing the metric or tsuids, provide at least one")
}

/// The metric and the tags of series by their TSUIDs.
pub(super) fn of_tsuids(tsuids: &[String]) -> Result<(Metric, Vec<Tags>), QueryError> {
    let mut metric: Option<String> = None;
    let mut series = Vec::with_capacity(tsuids.len());
    for tsuid in tsuids {
        let (name, tags) = tsuid_parts(tsuid)?;
        let first = metric.get_or_insert_with(|| name.clone());
        if *first != name {
            let problem = format!("One or more TSUIDs did not share the same metric [{first}] [{name}]");
            return Err(QueryError::Invalid(problem));
        }
        if !series.contains(&tags) {
            series.push(tags);
        }
    }
    metric.map(|name| (Metric::Name(name), series)).ok_or_else(nothing_selected)
}

fn run_one(
    number: usize,
    sub: &SubQuery,
    plan: &Plan,
    source: &dyn Source,
    budget: &mut Budget<'_>,
    visit: &mut dyn FnMut(Answer) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, QueryError> {
    let metric = plan.metric.open(source)?;
    let mut series = Vec::new();
    for matchers in plan.selections(sub, &metric) {
        read(&metric, &matchers, plan.window, plan.downsample, &mut series)?;
    }
    for group in groups(series, &sub.filters, plan.aggregator.is_none()) {
        let lines: Vec<Line> = match &sub.rate {
            Some(options) => group.lines.iter().map(|line| rates(line, options)).collect(),
            None => group.lines,
        };
        let line = merge(&lines, plan.aggregator, sub.rate.is_some(), &plan.window, budget)?;
        let (tags, aggregate_tags) = common_tags(&group.series);
        let metric = plan.metric.name().to_owned();
        let answer = Answer { query: number, metric, tags, aggregate_tags, series: group.series, line };
        if visit(answer).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The conditions that only the series with these tags satisfies.
pub(super) fn exactly(columns: &TableColumns, tags: &[(String, String)]) -> Vec<TagMatcher> {
    let own = tags
        .iter()
        .map(|(name, value)| TagMatcher { tag: name.clone(), predicate: TagPredicate::Is(value.clone()) });
    own.chain(absent(columns, |tag| tags.iter().any(|(name, _)| name == tag))).collect()
}

/// The condition that a series has no tag but those of the filters.
pub(super) fn no_other_tags(columns: &TableColumns, sub: &SubQuery) -> Vec<TagMatcher> {
    let allowed = |tag: &str| sub.filters.iter().any(|filter| filter.tag == tag && !filter.wants_no_tag());
    absent(columns, allowed).collect()
}

fn absent(columns: &TableColumns, allowed: impl Fn(&str) -> bool) -> impl Iterator<Item = TagMatcher> {
    let others = columns.tags.iter().filter(move |tag| !allowed(&tag.tag));
    others.map(|tag| TagMatcher { tag: tag.tag.to_string(), predicate: TagPredicate::Absent })
}
