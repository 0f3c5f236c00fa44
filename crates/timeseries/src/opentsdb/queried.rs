//! The stored rows that a query is about, for callers that delete them.

use model::{TimeRange, Timestamp};
use store::{TagMatcher, TagPredicate};

use super::metric::Opened;
use super::run::plans;
use super::{Query, QueryError, SubQuery};
use crate::Source;

/// Rows of one table.
#[derive(Debug, Clone)]
pub struct QueriedRows {
    /// The table.
    pub table: String,
    /// The field that the query reads; `None` if the table has no other one.
    pub key: Option<String>,
    /// The series: those that satisfy all matchers. The table has each of their tags.
    pub matchers: Vec<TagMatcher>,
    /// The times of the query. It reads more to interpolate, but is not about that.
    pub range: TimeRange,
}

/// The rows whose values are the points that a query combines. Series that a group leaves out are not among them.
///
/// # Errors
/// The query is wrong, a metric does not exist, or a table cannot be read.
pub fn queried_rows(query: &Query, source: &dyn Source) -> Result<Vec<QueriedRows>, QueryError> {
    let at = |millis: i64| Timestamp::from_millis(millis).unwrap_or(Timestamp::MAX);
    let range = TimeRange::new(at(query.start), at(query.end.saturating_add(1)));
    let mut rows = Vec::new();
    for (sub, plan) in query.queries.iter().zip(plans(query)?) {
        let metric = plan.metric.open(source)?;
        let columns = metric.table.columns();
        let key = (columns.fields.len() > 1).then(|| columns.fields[metric.field].key.to_string());
        for mut matchers in plan.selections(sub, &metric) {
            if !plan.aggregator.is_none() {
                matchers.extend(grouped(sub));
            }
            if let Some(matchers) = of_table(&metric, matchers) {
                let table = columns.table.name().to_owned();
                rows.push(QueriedRows { table, key: key.clone(), matchers, range });
            }
        }
    }
    Ok(rows)
}

/// A series without a tag that groups is in no group.
fn grouped(sub: &SubQuery) -> impl Iterator<Item = TagMatcher> {
    let tags = sub.filters.iter().filter(|filter| filter.group_by);
    tags.map(|filter| TagMatcher { tag: filter.tag.clone(), predicate: TagPredicate::Present })
}

/// The matchers on tags that the table has; `None` if another one cannot be satisfied.
fn of_table(metric: &Opened<'_>, matchers: Vec<TagMatcher>) -> Option<Vec<TagMatcher>> {
    let columns = metric.table.columns();
    let (known, unknown): (Vec<_>, Vec<_>) =
        matchers.into_iter().partition(|matcher| columns.tags.iter().any(|tag| *tag.tag == *matcher.tag));
    unknown.iter().all(|matcher| matcher.predicate.accepts(None)).then_some(known)
}
