//! Driver `prometheus`: the HiTSDB test through Prometheus' remote write 1.0, in Protobuf compressed with Snappy.
//! The metric is the label `__name__`; labels are in order.

use wire::prometheus::{end_series, pack, push_label, push_sample, start_series};

use super::request::Format;
use super::timeseries::protocol::Writes;
use super::timeseries::refusal::quoted;
use super::timeseries::timelines::{METRIC, PointPosition, TAG_KEY, Timelines};

/// Writes of `/api/v1/write`.
#[derive(Debug)]
pub(crate) struct RemoteWrite;

impl Writes for RemoteWrite {
    fn path(&self) -> String {
        "/api/v1/write".to_owned()
    }

    fn format(&self) -> Format {
        Format::RemoteWrite
    }

    fn append(&self, timelines: &Timelines, first: u64, points: u64, body: &mut Vec<u8>) {
        let (mut message, mut text) = (Vec::new(), [String::new(), String::new()]);
        for point in first..first + points {
            append_series(timelines, timelines.place(point), &mut text, &mut message);
        }
        body.extend(pack(&message).expect("BUG: a request has no 4 GiB"));
    }

    fn check(&self, status: u16, body: &[u8], _: u64) -> Result<(), String> {
        if matches!(status, 200 | 204) { Ok(()) } else { Err(quoted(status, body)) }
    }
}

/// Appends a series with one sample. `text` is for names and values.
fn append_series(timelines: &Timelines, place: PointPosition, text: &mut [String; 2], out: &mut Vec<u8>) {
    let [name, value] = text;
    let mark = start_series(out);
    set(name, METRIC, timelines.metric(place.timeline));
    push_label(out, "__name__", name);
    for tag in 0..timelines.tags {
        set(name, TAG_KEY, tag.into());
        set(value, &timelines.tag_value, timelines.tag_value(place.timeline, tag));
        push_label(out, name, value);
    }
    push_sample(out, timelines.value(place), timelines.time_ms(place.cycle));
    end_series(out, mark);
}

/// Sets a text to `before` and a number.
fn set(text: &mut String, before: &str, number: u64) {
    use std::fmt::Write as _;
    text.clear();
    text.push_str(before);
    // A text takes everything.
    let _ = write!(text, "{number}");
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::timeseries::timelines::example;
    use super::*;

    #[derive(Message)]
    struct WriteRequest {
        #[prost(message, repeated, tag = "1")]
        timeseries: Vec<TimeSeries>,
    }

    #[derive(Message)]
    struct TimeSeries {
        #[prost(message, repeated, tag = "1")]
        labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        samples: Vec<Sample>,
    }

    #[derive(Message)]
    struct Label {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        value: String,
    }

    #[derive(Message)]
    struct Sample {
        #[prost(double, tag = "1")]
        value: f64,
        #[prost(int64, tag = "2")]
        timestamp: i64,
    }

    #[test]
    fn a_request_decodes_to_a_series_for_each_point() {
        let timelines = Timelines { count: 1_000, metrics: 200, ..example() };
        let mut body = b"what was there".to_vec();
        body.clear();
        RemoteWrite.append(&timelines, 995, 10, &mut body);
        let message = wire::prometheus::unpack(&body, 1_000_000).unwrap();
        let request = WriteRequest::decode(&message[..]).unwrap();
        assert_eq!(request.timeseries.len(), 10);
        for (point, series) in (995..).zip(&request.timeseries) {
            let place = timelines.place(point);
            let labels: Vec<(&str, &str)> =
                series.labels.iter().map(|label| (label.name.as_str(), label.value.as_str())).collect();
            let name = timelines.metric_name(timelines.metric(place.timeline));
            let (first, second) =
                (format!("000000000v{}", place.timeline), format!("000000000v{}", point % 10));
            assert_eq!(
                labels,
                [("__name__", name.as_str()), ("tagkeyname0", &first), ("tagkeyname1", &second)]
            );
            let [Sample { value, timestamp }] = series.samples[..] else { panic!("{series:?}") };
            assert_eq!((value, timestamp), (timelines.value(place), timelines.time_ms(place.cycle)));
        }
    }
}
