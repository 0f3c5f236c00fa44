//! Reading back through OpenTSDB's interface.

use load::Result;
use serde_json::{Value, json};

use crate::timeseries::reader::{Http, Point, ReadBack};
use crate::timeseries::timelines::Timelines;

/// A server that answers `/api/query`.
#[derive(Debug)]
pub(crate) struct OpenTsdb(pub(crate) Http);

impl OpenTsdb {
    /// Asks one query. An unknown metric, which is an error of the server, has no result.
    fn query(&self, from_ms: i64, until_ms: i64, query: &Value) -> Result<Vec<Value>> {
        let body = json!({ "start": from_ms, "end": until_ms, "msResolution": true, "queries": [query] });
        match self.0.post("/api/query", &body)? {
            Value::Array(results) => Ok(results),
            other => Err(self.0.wrong("/api/query", &format!("no array but {other}"))),
        }
    }
}

/// The points of a result.
fn points(result: &Value) -> Option<Vec<Point>> {
    let points = result["dps"].as_object()?;
    points.iter().map(|(time, value)| Some((time.parse().ok()?, value.as_f64()?))).collect()
}

impl ReadBack for OpenTsdb {
    fn timelines(&self, _: &Timelines) -> Result<Option<u64>> {
        let Some(answer) = self.0.get_if_there("/api/tscount")? else { return Ok(None) };
        let count = answer["tscount"].as_u64();
        count.map(Some).ok_or_else(|| self.0.wrong("/api/tscount", &format!("no `tscount` in {answer}")))
    }

    fn count(&self, timelines: &Timelines, metric: u64, until_ms: i64) -> Result<u64> {
        // The sum of the counts of all timelines. A `0all` interval does not contain its end.
        let metric = timelines.metric_name(metric);
        let tags = json!([{ "type": "wildcard", "tagk": "tagkeyname0", "filter": format!("{}*", timelines.tag_value),
                            "groupBy": false }]);
        let query =
            json!({ "metric": metric, "aggregator": "sum", "downsample": "0all-count", "filters": tags });
        let results = self.query(timelines.start_ms, until_ms + 1, &query)?;
        let all = results.iter().filter_map(points).flatten();
        Ok(all.map(|(_, count)| count as u64).sum())
    }

    fn points(
        &self,
        timelines: &Timelines,
        timeline: u64,
        from_ms: i64,
        until_ms: i64,
    ) -> Result<Vec<Point>> {
        let (key, value) = timelines.first_tag(timeline);
        let metric = timelines.metric_name(timelines.metric(timeline));
        let query = json!({ "metric": metric, "aggregator": "none", "tags": { key: value } });
        let results = self.query(from_ms, until_ms, &query)?;
        let mut all: Vec<Point> = results.iter().filter_map(points).flatten().collect();
        all.sort_by_key(|(time, _)| *time);
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_with_their_times_and_values_of_any_number_form() {
        let result =
            json!({ "metric": "m", "tags": {}, "aggregateTags": [], "dps": { "1000": 1, "2000": 2.5 } });
        assert_eq!(points(&result), Some(vec![(1_000, 1.0), (2_000, 2.5)]));
        assert_eq!(points(&json!({ "dps": { "x": 1 } })), None);
        assert_eq!(points(&json!({})), None);
    }
}
