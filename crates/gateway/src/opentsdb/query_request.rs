//! The request of a query, and the form of its answer.

use serde_json::{Map, Value, json};
use timeseries::opentsdb::{Downsample, Fill, PointLimits, Query, Selection, SubQuery};

/// A query, and how its answer looks.
#[derive(Debug)]
pub(super) struct QueryRequest {
    pub(super) query: Query,
    /// For each sub query, the points that are shown.
    pub(super) cuts: Vec<PointLimits>,
    pub(super) form: AnswerForm,
    /// Whether what was read is deleted.
    pub(super) delete: bool,
}

/// How an answer looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AnswerForm {
    /// Times are milliseconds, not seconds.
    pub(super) milliseconds: bool,
    /// Points are arrays, not members of an object.
    pub(super) arrays: bool,
    /// The answer names the TSUIDs of its series.
    pub(super) tsuids: bool,
    /// Each answer has its sub query.
    pub(super) query: bool,
    /// Each answer has numbers about itself.
    pub(super) stats: bool,
    /// There are numbers about the whole.
    pub(super) summary: bool,
    /// Answers have no annotations of their series.
    pub(super) no_annotations: bool,
    /// Each answer has the annotations of all series.
    pub(super) global_annotations: bool,
}

impl QueryRequest {
    /// For each sub query, the JSON of a value that is missing.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let fill = |sub: &SubQuery| {
            let text = sub.downsample.as_deref().filter(|text| !text.is_empty())?;
            Downsample::parse(text, self.query.zone, self.query.use_calendar).ok().map(|parsed| parsed.fill())
        };
        let subs = self.query.queries.iter();
        subs.map(|sub| if fill(sub) == Some(Fill::Null) { "null" } else { "\"NaN\"" }).collect()
    }
}

/// A sub query as OpenTSDB shows it.
pub(super) fn shown(sub: &SubQuery, index: usize) -> Value {
    let (metric, tsuids) = match &sub.selection {
        Selection::Metric(metric) => (Some(metric.name()), None),
        Selection::Tsuids(tsuids) => (None, Some(tsuids)),
    };
    let filters = sub.filters.iter().map(|filter| {
        json!({ "tagk": filter.tag, "filter": filter.text, "group_by": filter.group_by, "type": filter.kind.name })
    });
    let grouping = sub.filters.iter().filter(|filter| filter.group_by);
    let tags: Map<_, _> = grouping
        .map(|filter| (filter.tag.clone(), format!("{}({})", filter.kind.name, filter.text).into()))
        .collect();
    let rate = sub.rate.map(|rate| {
        json!({
            "counter": rate.counter, "counterMax": rate.counter_max, "resetValue": rate.reset_value,
            "dropResets": rate.drop_resets,
        })
    });
    json!({
        "aggregator": sub.aggregator, "metric": metric, "tsuids": tsuids, "downsample": sub.downsample,
        "rate": sub.rate.is_some(), "rateOptions": rate, "filters": filters.collect::<Value>(), "tags": tags,
        "explicitTags": sub.explicit_tags, "percentiles": null, "index": index,
    })
}

#[cfg(test)]
mod tests {
    use timeseries::opentsdb::sub_query;

    use super::*;

    #[test]
    fn a_sub_query_is_shown_with_its_filters_and_its_number() {
        let sub = sub_query("sum:1m-avg:rate{counter,9}:cpu{host=*}{zone=a|b}").unwrap();
        let shown = shown(&sub, 3);
        assert_eq!(
            (&shown["index"], &shown["metric"], &shown["tsuids"]),
            (&3.into(), &"cpu".into(), &Value::Null)
        );
        assert_eq!(shown["tags"], json!({ "host": "wildcard(*)" }));
        assert_eq!(shown["rateOptions"]["counterMax"], 9);
        let zone = json!({ "tagk": "zone", "filter": "a|b", "group_by": false, "type": "literal_or" });
        assert_eq!(shown["filters"][0], zone);
    }
}
