//! Reading back from VictoriaMetrics, through its own interface.

use clients::http::escaped;
use load::Result;
use serde::Deserialize;

use super::reader::{Http, Point, ReadBack};
use super::timelines::{TAG_KEY, Timelines};

/// A VictoriaMetrics. Points of line protocol get the name of the field behind that of the metric.
#[derive(Debug)]
pub(crate) struct Victoria {
    pub(crate) http: Http,
    pub(crate) suffix: &'static str,
}

/// A line of an export.
#[derive(Deserialize)]
struct Exported {
    values: Vec<f64>,
    timestamps: Vec<i64>,
}

impl Victoria {
    fn metric(&self, timelines: &Timelines, metric: u64) -> String {
        format!("{}{}", timelines.metric_name(metric), self.suffix)
    }
}

impl ReadBack for Victoria {
    /// What was acknowledged becomes searchable a second later, or with this request.
    fn settle(&self) -> Result<()> {
        self.http.text("/internal/force_flush").map(drop)
    }

    fn timelines(&self, _: &Timelines) -> Result<Option<u64>> {
        let path = "/api/v1/series/count";
        let answer = self.http.get(path)?;
        let count = answer["data"][0].as_u64();
        count.map(Some).ok_or_else(|| self.http.wrong(path, &format!("no count in {answer}")))
    }

    fn count(&self, timelines: &Timelines, metric: u64, until_ms: i64) -> Result<u64> {
        // A window does not contain its beginning, and the only point of a timeline is not found if it is at its end. There is
        // nothing in the interval before the first cycle, and nothing in the millisecond after the last one.
        let time_ms = until_ms + 1;
        let window_ms = time_ms - timelines.start_ms + timelines.interval_ms;
        let query = format!(
            "sum(count_over_time({}{{{TAG_KEY}0=~\"{}.*\"}}[{window_ms}ms]))",
            self.metric(timelines, metric),
            timelines.tag_value
        );
        let time = time_ms as f64 / 1_000.0;
        let path = format!("/api/v1/query?nocache=1&time={time}&query={}", escaped(&query));
        let answer = self.http.get(&path)?;
        let results = answer["data"]["result"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(result) = results.first() else { return Ok(0) };
        let count = result["value"][1].as_str().and_then(|text| text.parse::<f64>().ok());
        count
            .map(|count| count as u64)
            .ok_or_else(|| self.http.wrong(&path, &format!("no value in {answer}")))
    }

    fn points(
        &self,
        timelines: &Timelines,
        timeline: u64,
        from_ms: i64,
        until_ms: i64,
    ) -> Result<Vec<Point>> {
        let (key, value) = timelines.first_tag(timeline);
        let matched = format!("{}{{{key}=\"{value}\"}}", self.metric(timelines, timelines.metric(timeline)));
        let path = format!(
            "/api/v1/export?match[]={}&start={}&end={}",
            escaped(&matched),
            from_ms as f64 / 1_000.0,
            until_ms as f64 / 1_000.0
        );
        let text = self.http.text(&path)?;
        let mut points = Vec::new();
        for line in text.lines() {
            let Exported { values, timestamps } =
                serde_json::from_str(line).map_err(|error| self.http.wrong(&path, &error.to_string()))?;
            points.extend(timestamps.into_iter().zip(values));
        }
        points.sort_by_key(|(time, _)| *time);
        Ok(points)
    }
}
