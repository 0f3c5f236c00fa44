//! Reading back from QuestDB, in SQL through `/exec`. Metrics are tables, tags are columns of symbols.

use clients::http::escaped;
use load::Result;
use serde_json::Value;

use super::reader::{Http, Point, ReadBack};
use super::timelines::{TAG_KEY, Timelines};
use crate::limits::TIMESERIES_METRICS_COUNTED;

#[derive(Debug)]
pub(crate) struct QuestDb(pub(crate) Http);

impl QuestDb {
    /// The rows of a query.
    fn rows(&self, sql: &str) -> Result<Vec<Value>> {
        let path = format!("/exec?query={}", escaped(sql));
        let mut answer = self.0.get(&path)?;
        match answer["dataset"].take() {
            Value::Array(rows) => Ok(rows),
            _ => Err(self.0.wrong(&path, &format!("no `dataset` in {answer}"))),
        }
    }

    fn number(&self, sql: &str) -> Result<u64> {
        let rows = self.rows(sql)?;
        let number = rows.first().and_then(|row| row[0].as_u64());
        number.ok_or_else(|| self.0.wrong(sql, &format!("no number in {rows:?}")))
    }
}

impl ReadBack for QuestDb {
    /// Rows become visible when the log was applied to the table, which has no request that waits for it.
    fn settle(&self) -> Result<()> {
        let waiting = "select count() from wal_tables() where writerTxn <> sequencerTxn";
        let begin = std::time::Instant::now();
        while self.number(waiting)? > 0 {
            if begin.elapsed() > crate::limits::TIMESERIES_READ_TIMEOUT {
                return Err(self.0.wrong("/exec", "the log is not applied to the tables"));
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Ok(())
    }

    /// Each table is asked, so not with more of them than are counted.
    fn timelines(&self, timelines: &Timelines) -> Result<Option<u64>> {
        if timelines.metrics > TIMESERIES_METRICS_COUNTED {
            return Ok(None);
        }
        let names = self.rows("select table_name from tables() where table_name like 'metricname%'")?;
        let mut sum = 0;
        for name in names.iter().filter_map(|row| row[0].as_str()) {
            sum += self.number(&format!("select count_distinct({TAG_KEY}0) from '{name}'"))?;
        }
        Ok(Some(sum))
    }

    fn count(&self, timelines: &Timelines, metric: u64, until_ms: i64) -> Result<u64> {
        self.number(&format!(
            "select count() from '{}' where timestamp between cast({} as timestamp) and cast({} as timestamp) \
             and {TAG_KEY}0 like '{}%'",
            timelines.metric_name(metric),
            timelines.start_ms * 1_000,
            until_ms * 1_000,
            timelines.tag_value
        ))
    }

    fn points(
        &self,
        timelines: &Timelines,
        timeline: u64,
        from_ms: i64,
        until_ms: i64,
    ) -> Result<Vec<Point>> {
        let (key, value) = timelines.first_tag(timeline);
        let sql = format!(
            "select cast(timestamp as long) / 1000, value from '{}' where {key} = '{value}' and timestamp between \
             cast({} as timestamp) and cast({} as timestamp) order by timestamp",
            timelines.metric_name(timelines.metric(timeline)),
            from_ms * 1_000,
            until_ms * 1_000
        );
        let rows = self.rows(&sql)?;
        let points: Option<Vec<Point>> =
            rows.iter().map(|row| Some((row[0].as_i64()?, row[1].as_f64()?))).collect();
        points.ok_or_else(|| self.0.wrong("/exec", "a row without time and value"))
    }
}
