//! Queries as JSON: the bodies of `POST /api/query` and of HiTSDB's `POST /api/mquery`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use timeseries::opentsdb::{
    Filter, Metric, PointLimits, Query, RateOptions, Selection, SubQuery, Tz, instant_millis, zone,
};

use super::answers::Refusal;
use super::lenient::{flag, number, or_default, text};
use super::query_request::{AnswerForm, QueryRequest};
use super::refused_members::refuse_members;

/// A query as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub(super) struct QueryBody {
    #[serde(deserialize_with = "text")]
    start: Option<String>,
    #[serde(deserialize_with = "text")]
    end: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) queries: Vec<SubBody>,
    #[serde(deserialize_with = "flag")]
    ms_resolution: bool,
    #[serde(rename = "showTSUIDs", deserialize_with = "flag")]
    show_tsuids: bool,
    #[serde(deserialize_with = "flag")]
    show_query: bool,
    #[serde(deserialize_with = "flag")]
    show_summary: bool,
    #[serde(deserialize_with = "flag")]
    show_stats: bool,
    #[serde(deserialize_with = "flag")]
    no_annotations: bool,
    #[serde(deserialize_with = "flag")]
    global_annotations: bool,
    #[serde(deserialize_with = "text")]
    timezone: Option<String>,
    #[serde(deserialize_with = "flag")]
    use_calendar: bool,
    #[serde(deserialize_with = "flag")]
    delete: bool,
}

/// A sub query as JSON.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SubBody {
    #[serde(deserialize_with = "text")]
    aggregator: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) metric: Option<String>,
    #[serde(deserialize_with = "or_default")]
    tsuids: Vec<String>,
    #[serde(deserialize_with = "text")]
    downsample: Option<String>,
    #[serde(deserialize_with = "flag")]
    rate: bool,
    #[serde(deserialize_with = "or_default")]
    rate_options: RateBody,
    #[serde(deserialize_with = "or_default")]
    tags: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    filters: Vec<FilterBody>,
    #[serde(deserialize_with = "flag")]
    explicit_tags: bool,
    #[serde(deserialize_with = "number")]
    limit: Option<usize>,
    #[serde(deserialize_with = "number")]
    offset: Option<usize>,
    #[serde(deserialize_with = "text")]
    dp_value: Option<String>,
    /// HiTSDB's fields, for `/api/mquery`.
    #[serde(deserialize_with = "or_default")]
    pub(super) fields: Vec<FieldBody>,
}

/// What a query of HiTSDB computes from a field.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FieldBody {
    #[serde(deserialize_with = "text")]
    pub(super) field: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) alias: Option<String>,
    #[serde(deserialize_with = "text")]
    aggregator: Option<String>,
    #[serde(deserialize_with = "text")]
    downsample: Option<String>,
    #[serde(deserialize_with = "flag")]
    rate: bool,
    #[serde(deserialize_with = "or_default")]
    rate_options: RateBody,
    #[serde(deserialize_with = "text")]
    dp_value: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RateBody {
    #[serde(deserialize_with = "flag")]
    counter: bool,
    #[serde(deserialize_with = "number")]
    counter_max: Option<i64>,
    #[serde(deserialize_with = "number")]
    reset_value: Option<i64>,
    #[serde(deserialize_with = "flag")]
    drop_resets: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilterBody {
    #[serde(rename = "type")]
    kind: String,
    tagk: String,
    #[serde(default, deserialize_with = "or_default")]
    filter: String,
    #[serde(default, alias = "group_by", deserialize_with = "flag")]
    group_by: bool,
}

impl QueryBody {
    pub(super) fn read(body: Value) -> Result<Self, Refusal> {
        refuse_members(&body)?;
        serde_json::from_value(body).map_err(|error| {
            Refusal::bad_request("Unable to parse the given JSON").with_details(error.to_string())
        })
    }

    /// The query of `POST /api/query`.
    pub(super) fn into_request(self, arrays: bool, now: i64) -> Result<QueryRequest, Refusal> {
        let (mut queries, mut cuts) = (Vec::new(), Vec::new());
        for sub in &self.queries {
            if !sub.fields.is_empty() {
                return Err(Refusal::bad_request(
                    "'fields' belongs to /api/mquery; here a metric table.field reads another field",
                ));
            }
            queries.push(sub.of_metric()?);
            cuts.push(sub.cut(sub.dp_value.as_deref())?);
        }
        if self.delete && !cuts.iter().all(PointLimits::is_whole) {
            return Err(Refusal::bad_request(
                "'delete' does not go with 'dpValue', 'offset' and 'limit': it deletes all points from start to end",
            ));
        }
        let form = AnswerForm {
            milliseconds: self.ms_resolution,
            arrays,
            tsuids: self.show_tsuids,
            query: self.show_query,
            stats: self.show_stats,
            summary: self.show_summary,
            no_annotations: self.no_annotations,
            global_annotations: self.global_annotations,
        };
        Ok(QueryRequest { query: self.query(queries, now)?, cuts, form, delete: self.delete })
    }

    /// The query with the sub queries.
    pub(super) fn query(&self, queries: Vec<SubQuery>, now: i64) -> Result<Query, Refusal> {
        let zone = self.timezone.as_deref().map_or(Ok(Tz::UTC), zone)?;
        let (start, end) = times(self.start.as_deref(), self.end.as_deref(), zone, now)?;
        Ok(Query { start, end, zone, use_calendar: self.use_calendar, queries })
    }

    /// Whether times are milliseconds.
    pub(super) fn milliseconds(&self) -> bool {
        self.ms_resolution
    }

    /// Refuses what `/api/mquery` does not have.
    pub(super) fn refuse_for_fields(&self) -> Result<(), Refusal> {
        let absent = [
            (self.delete, "delete"),
            (self.show_tsuids, "showTSUIDs"),
            (self.show_query, "showQuery"),
            (self.show_summary, "showSummary"),
            (self.show_stats, "showStats"),
            (self.queries.iter().any(|sub| !sub.tsuids.is_empty()), "tsuids"),
        ];
        match absent.iter().find(|(is_set, _)| *is_set) {
            None => Ok(()),
            Some((_, name)) => {
                Err(Refusal::bad_request(format!("'{name}' is not supported here; /api/query has it")))
            }
        }
    }
}

impl SubBody {
    fn of_metric(&self) -> Result<SubQuery, Refusal> {
        let selection = match self.tsuids.as_slice() {
            [] => Selection::Metric(Metric::Name(self.metric.clone().unwrap_or_default())),
            tsuids => Selection::Tsuids(tsuids.to_vec()),
        };
        Ok(SubQuery {
            aggregator: self.aggregator.clone().unwrap_or_default(),
            selection,
            downsample: self.downsample.clone(),
            rate: self.rate.then(|| self.rate_options.read()),
            filters: self.filters()?,
            explicit_tags: self.explicit_tags,
        })
    }

    /// The sub query of one field. What the field does not say holds for all fields of the sub query.
    pub(super) fn of_field(&self, field: &FieldBody, name: &str) -> Result<SubQuery, Refusal> {
        let table = self.metric.clone().unwrap_or_default();
        let aggregator = field.aggregator.as_ref().or(self.aggregator.as_ref());
        Ok(SubQuery {
            aggregator: aggregator.cloned().unwrap_or_default(),
            selection: Selection::Metric(Metric::Field { table, field: name.to_owned() }),
            downsample: field.downsample.clone().or_else(|| self.downsample.clone()),
            rate: if field.rate {
                Some(field.rate_options.read())
            } else {
                self.rate.then(|| self.rate_options.read())
            },
            filters: self.filters()?,
            explicit_tags: self.explicit_tags,
        })
    }

    /// The points of a line that are shown.
    fn cut(&self, condition: Option<&str>) -> Result<PointLimits, Refusal> {
        Ok(PointLimits::new(condition, self.offset, self.limit)?)
    }

    /// The rows that are shown, and the condition of each field.
    pub(super) fn rows(&self) -> Result<PointLimits, Refusal> {
        self.cut(None)
    }

    /// The values of a field that are shown.
    pub(super) fn values_of(&self, field: &FieldBody) -> Result<PointLimits, Refusal> {
        Ok(PointLimits::new(field.dp_value.as_deref().or(self.dp_value.as_deref()), None, None)?)
    }

    fn filters(&self) -> Result<Vec<Filter>, Refusal> {
        let filters = self.filters.iter();
        let filters =
            filters.map(|filter| Filter::new(&filter.tagk, &filter.kind, &filter.filter, filter.group_by));
        let tags = self.tags.iter().map(|(tag, value)| Filter::of_tag(tag, value, true));
        Ok(filters.chain(tags).collect::<Result<_, _>>()?)
    }
}

impl RateBody {
    fn read(&self) -> RateOptions {
        let unset = RateOptions::default();
        RateOptions {
            counter: self.counter,
            counter_max: self.counter_max.unwrap_or(unset.counter_max),
            reset_value: self.reset_value.unwrap_or(unset.reset_value),
            drop_resets: self.drop_resets,
        }
    }
}

/// The first and the last time of a query.
pub(super) fn times(
    start: Option<&str>,
    end: Option<&str>,
    zone: Tz,
    now: i64,
) -> Result<(i64, i64), Refusal> {
    let start = start.ok_or_else(|| Refusal::bad_request("Missing start time"))?;
    let end = end.map_or(Ok(now), |end| instant_millis(end, zone, now))?;
    Ok((instant_millis(start, zone, now)?, end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_request(body: Value) -> Result<QueryRequest, Refusal> {
        QueryBody::read(body)?.into_request(false, 3_600_000)
    }

    #[test]
    fn a_query_of_grafana_is_read() {
        let body = json!({
            "start": 1000, "end": "1h-ago", "msResolution": true, "globalAnnotations": true, "showQuery": true,
            "queries": [{
                "metric": "cpu", "aggregator": "sum", "downsample": "1m-avg", "tags": { "host": "*" },
                "rate": true, "rateOptions": { "counter": true, "counterMax": "9", "resetValue": null },
                "filters": [{ "type": "wildcard", "tagk": "zone", "filter": "a*", "groupBy": false }],
            }],
        });
        let request = read_request(body).unwrap();
        assert_eq!((request.query.start, request.query.end), (1_000_000, 0));
        assert!(request.form.milliseconds && request.form.query && !request.form.arrays && !request.delete);
        let sub = &request.query.queries[0];
        let rate = sub.rate.unwrap();
        assert!(rate.counter && rate.counter_max == 9 && !rate.drop_resets);
        let filters: Vec<_> =
            sub.filters.iter().map(|filter| (filter.tag.as_str(), filter.group_by)).collect();
        assert_eq!(filters, [("zone", false), ("host", true)]);
    }

    #[test]
    fn null_is_absent() {
        let sub = json!({
            "aggregator": "sum", "metric": "m", "tsuids": null, "downsample": null, "rate": null, "tags": null,
            "filters": null, "explicitTags": null, "percentiles": null, "fields": null,
        });
        let request =
            read_request(json!({ "start": "1", "end": null, "timezone": null, "queries": [sub] })).unwrap();
        assert_eq!(request.query.end, 3_600_000);
        assert_eq!(request.query.queries[0].selection, Selection::Metric(Metric::Name("m".into())));
    }

    #[test]
    fn a_query_without_a_start_or_with_what_is_absent_here_is_refused() {
        let sub = |more: Value| {
            let mut sub = json!({ "aggregator": "sum", "metric": "m" });
            sub.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "start": 1, "queries": [sub] })
        };
        for (wrong, part) in [
            (json!({}), "Missing start time"),
            (json!({ "start": [] }), "Unable to parse"),
            (json!({ "start": 1, "padding": true }), "padding"),
            (sub(json!({ "percentiles": [99.0] })), "percentiles"),
            (sub(json!({ "rollupUsage": "ROLLUP_NOFALLBACK" })), "rollupUsage"),
            (sub(json!({ "fields": [{ "field": "f" }] })), "/api/mquery"),
            (json!({ "start": 1, "delete": true, "queries": [{ "metric": "m", "limit": 5 }] }), "'limit'"),
            (sub(json!({ "filters": [{ "type": "soundex", "tagk": "a", "filter": "b" }] })), "soundex"),
        ] {
            let refusal = read_request(wrong.clone()).unwrap_err();
            assert!(refusal.message().contains(part), "{wrong}: {}", refusal.message());
        }
        assert!(read_request(sub(json!({ "rollupUsage": "ROLLUP_RAW", "preAggregate": false }))).is_ok());
    }
}
