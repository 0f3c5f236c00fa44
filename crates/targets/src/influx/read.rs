//! Reading back with InfluxQL.

use clients::http::escaped;
use load::Result;
use serde_json::Value;

use crate::timeseries::reader::{Http, Point, ReadBack};
use crate::timeseries::timelines::Timelines;

/// The field of a point.
const FIELD: &str = "value";

/// A server that answers `/query`.
#[derive(Debug)]
pub(crate) struct InfluxQl {
    pub(crate) http: Http,
    pub(crate) database: String,
}

impl InfluxQl {
    /// Makes the database, and with `again` removes first what another run has left there.
    pub(crate) fn create(&self, again: bool) -> Result<()> {
        let statements: &[&str] = if again { &["DROP", "CREATE"] } else { &["CREATE"] };
        for statement in statements {
            let query = format!("{statement} DATABASE {}", identifier(&self.database));
            let path = format!("/query?q={}", escaped(&query));
            let answer = self.http.post_empty(&path)?;
            let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
            self.error_of(&path, &answer)?;
        }
        Ok(())
    }

    /// The series of a query's only result.
    pub(crate) fn series(&self, query: &str) -> Result<Vec<Value>> {
        let path = format!("{}&q={}", database_path(&self.database), escaped(query));
        let mut answer = self.http.get(&path)?;
        self.error_of(&path, &answer)?;
        match answer["results"][0]["series"].take() {
            Value::Array(series) => Ok(series),
            Value::Null => Ok(Vec::new()),
            other => Err(self.http.wrong(&path, &format!("`series` is {other}"))),
        }
    }

    fn error_of(&self, path: &str, answer: &Value) -> Result<()> {
        let error = answer["error"].as_str().or_else(|| answer["results"][0]["error"].as_str());
        error.map_or(Ok(()), |error| Err(self.http.wrong(path, error)))
    }
}

/// The path of a query without the query, with times in milliseconds.
fn database_path(database: &str) -> String {
    format!("/query?db={}&epoch=ms", escaped(database))
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The sum of a column of all rows.
fn sum(series: &[Value], column: usize) -> u64 {
    let rows = series.iter().filter_map(|one| one["values"].as_array()).flatten();
    rows.filter_map(|row| row[column].as_u64()).sum()
}

impl ReadBack for InfluxQl {
    fn timelines(&self, _: &Timelines) -> Result<Option<u64>> {
        let query = format!("SHOW SERIES EXACT CARDINALITY ON {}", identifier(&self.database));
        // Old servers do not know the statement.
        match self.series(&query) {
            Ok(series) => Ok(Some(sum(&series, 0))),
            Err(error) if error.to_string().contains("parsing query") => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn count(&self, timelines: &Timelines, metric: u64, until_ms: i64) -> Result<u64> {
        let series = self.series(&format!(
            "SELECT count({}) FROM {} WHERE time >= {}ms AND time <= {until_ms}ms AND tagkeyname0 =~ /^{}/",
            identifier(FIELD),
            identifier(&timelines.metric_name(metric)),
            timelines.start_ms,
            timelines.tag_value
        ))?;
        Ok(sum(&series, 1))
    }

    fn points(
        &self,
        timelines: &Timelines,
        timeline: u64,
        from_ms: i64,
        until_ms: i64,
    ) -> Result<Vec<Point>> {
        let (key, value) = timelines.first_tag(timeline);
        let series = self.series(&format!(
            "SELECT {} FROM {} WHERE {} = '{value}' AND time >= {from_ms}ms AND time <= {until_ms}ms",
            identifier(FIELD),
            identifier(&timelines.metric_name(timelines.metric(timeline))),
            identifier(&key)
        ))?;
        let rows = series.iter().filter_map(|one| one["values"].as_array()).flatten();
        let points: Option<Vec<Point>> = rows.map(|row| Some((row[0].as_i64()?, row[1].as_f64()?))).collect();
        points.ok_or_else(|| self.http.wrong("/query", "a row without time and value"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_of_all_series_add_up() {
        let series = [json!({ "values": [[0, 3], [0, 4]] }), json!({ "values": [[0, 5]] }), json!({})];
        assert_eq!(sum(&series, 1), 12);
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(identifier("a\"b\\c"), "\"a\\\"b\\\\c\"");
        assert_eq!(database_path("my db"), "/query?db=my%20db&epoch=ms");
    }
}
