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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{Batch, Namespace, SeriesKey, ValueRef};
    use store::{Durability, MemoryStore, Writer};

    use super::*;
    use crate::opentsdb::{Tz, sub_query, tsuid, tsuid_query};
    use crate::{Access, StoreSource};

    /// A table `one` with one field, and a table `two` with two.
    fn source() -> StoreSource {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        for (table, fields) in [("one", vec!["value"]), ("two", vec!["value", "other"])] {
            let tags = [("host", "a"), ("zone", "x")];
            let series = store.series(&SeriesKey::new(table, &tags).unwrap()).unwrap();
            let mut row = batch.builder();
            fields.iter().for_each(|field| row.field(field, ValueRef::I64(1)));
            row.row(series, Timestamp::from_micros(5_000_000));
            row.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
        StoreSource::new(Arc::new(store), Namespace::DEFAULT, Arc::new(|_| Access::Everything))
    }

    fn rows(m: &str) -> Vec<String> {
        let sub = m.strip_prefix("tsuid=").map_or_else(|| sub_query(m), tsuid_query).unwrap();
        let query =
            Query { start: 1_000, end: 2_000, zone: Tz::UTC, use_calendar: false, queries: vec![sub] };
        let shown = |rows: &QueriedRows| {
            let matchers = rows.matchers.iter();
            let matchers: Vec<_> =
                matchers.map(|matcher| format!("{} {:?}", matcher.tag, matcher.predicate)).collect();
            let (start, end) = (rows.range.start.micros(), rows.range.end.micros());
            format!("{} {:?} {start}..{end} {}", rows.table, rows.key, matchers.join(" & "))
        };
        queried_rows(&query, &source()).unwrap().iter().map(shown).collect()
    }

    #[test]
    fn a_query_is_about_the_values_from_its_start_to_its_end() {
        assert_eq!(rows("sum:one"), ["one None 1000000..2001000 "]);
        assert_eq!(rows("sum:1h-avg:two.other"), ["two Some(\"other\") 1000000..2001000 "]);
        assert_eq!(rows("sum:one{host=a}"), ["one None 1000000..2001000 host OneOf([\"a\"]) & host Present"]);
        assert_eq!(rows("none:one{}{host=a}"), ["one None 1000000..2001000 host OneOf([\"a\"])"]);
        let tags = [("host".to_owned(), "a".to_owned()), ("zone".to_owned(), "x".to_owned())];
        assert_eq!(
            rows(&format!("tsuid=sum:{}", tsuid("one", &tags))),
            ["one None 1000000..2001000 host Is(\"a\") & zone Is(\"x\")"]
        );
    }

    #[test]
    fn a_tag_that_the_table_does_not_have_is_satisfied_or_not() {
        assert!(rows("sum:one{rack=*}").is_empty());
        assert_eq!(rows("sum:one{}{rack=not_key()}"), ["one None 1000000..2001000 "]);
        assert_eq!(
            rows("sum:explicit_tags:one{host=a}"),
            ["one None 1000000..2001000 host OneOf([\"a\"]) & zone Absent & host Present"]
        );
    }
}
