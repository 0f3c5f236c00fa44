//! Driver `influx`: the HiTSDB test through InfluxDB's `/write`, in line protocol.
//!
//! `mod.rs` writes points and checks the acknowledgements, `read.rs` reads back with InfluxQL.

mod read;

use wire::resp::write::decimal;

use super::opentsdb::append_value;
use super::request::Format;
use super::timeseries::protocol::Writes;
use super::timeseries::refusal::quoted;
use super::timeseries::timelines::{METRIC, PointPosition, TAG_KEY, Timelines};
pub(crate) use read::InfluxQl;

/// Writes of `/write`.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The database, which exists.
    pub(crate) database: String,
}

impl Writes for Lines {
    fn path(&self) -> String {
        format!("/write?db={}&precision=ms", clients::http::escaped(&self.database))
    }

    fn format(&self) -> Format {
        Format::Text
    }

    fn append(&self, timelines: &Timelines, first: u64, points: u64, body: &mut Vec<u8>) {
        for point in first..first + points {
            append_line(timelines, timelines.place(point), body);
        }
    }

    fn check(&self, status: u16, body: &[u8], _: u64) -> Result<(), String> {
        if status == 204 { Ok(()) } else { Err(quoted(status, body)) }
    }
}

fn append_line(timelines: &Timelines, place: PointPosition, body: &mut Vec<u8>) {
    body.extend_from_slice(METRIC.as_bytes());
    decimal(body, timelines.metric(place.timeline));
    for tag in 0..timelines.tags {
        body.push(b',');
        body.extend_from_slice(TAG_KEY.as_bytes());
        decimal(body, tag.into());
        body.push(b'=');
        body.extend_from_slice(timelines.tag_value.as_bytes());
        decimal(body, timelines.tag_value(place.timeline, tag));
    }
    body.extend_from_slice(b" value=");
    append_value(timelines.thousandths(place), body);
    body.push(b' ');
    decimal(body, timelines.time_ms(place.cycle).unsigned_abs());
    body.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::super::timeseries::timelines::example;
    use super::*;

    #[test]
    fn a_request_has_a_line_for_each_point() {
        let timelines = example();
        let mut body = Vec::new();
        Lines { database: "d".to_owned() }.append(&timelines, 12, 2, &mut body);
        let text = String::from_utf8(body).unwrap();
        let value = |timeline| timelines.thousandths(PointPosition { timeline, cycle: 1 });
        let line = |timeline: u64, metric: u64| {
            let value = value(timeline);
            format!(
                "metricname{metric},tagkeyname0=000000000v{timeline},tagkeyname1=000000000v{timeline} \
                 value={}.{:03} 1700000001000\n",
                value / 1_000,
                value % 1_000
            )
        };
        assert_eq!(text, line(2, 2) + &line(3, 0));
        let parsed: Vec<_> = wire::line::lines(&text).collect();
        assert!(parsed.len() == 2 && parsed.iter().all(Result::is_ok), "{parsed:?}");
    }

    #[test]
    fn a_partial_write_acknowledges_nothing() {
        let lines = Lines { database: "my db".to_owned() };
        assert_eq!(lines.path(), "/write?db=my%20db&precision=ms");
        assert_eq!(lines.check(204, b"", 1), Ok(()));
        let error =
            lines.check(400, br#"{"error":"partial write: points beyond retention policy dropped=1"}"#, 1);
        assert_eq!(error.unwrap_err(), "status 400: partial write: points beyond retention policy dropped=1");
    }
}
