//! Queries as parameters of a URL.

use std::collections::HashSet;

use timeseries::opentsdb::{PointLimits, Query, Tz, sub_query, tsuid_query, zone};

use super::answers::Refusal;
use super::query_body::times;
use super::query_request::{AnswerForm, QueryRequest};

/// Parameters that ask for what is absent here.
const ABSENT: [(&str, &str); 4] = [
    ("exp", "this server has no expressions"),
    ("jsonp", "answers are JSON only"),
    ("padding", "the answer has only points from start to end"),
    ("delete", "send DELETE, or POST with the member delete"),
];

impl QueryRequest {
    /// Reads the parameters of `GET` and `DELETE /api/query`. A flag counts if it is there, whatever its value is.
    pub(super) fn of_parameters(text: &str, now: i64) -> Result<Self, Refusal> {
        let (mut start, mut end, mut zone_of_query, mut form) = (None, None, Tz::UTC, AnswerForm::default());
        let (mut by_metric, mut by_tsuid) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            // A sub query that is there twice has one answer.
            if matches!(&*name, "m" | "tsuid") && !seen.insert((name.clone(), value.clone())) {
                continue;
            }
            match name.trim_end() {
                "start" => start = Some(value),
                "end" => end = Some(value),
                "m" => by_metric.push(sub_query(&value)?),
                "tsuid" => by_tsuid.push(tsuid_query(&value)?),
                "tz" | "timezone" => zone_of_query = zone(&value)?,
                "ms" => form.milliseconds = true,
                "arrays" => form.arrays = true,
                "show_tsuids" => form.tsuids = true,
                "show_query" => form.query = true,
                "show_stats" => form.stats = true,
                "show_summary" => form.summary = true,
                "no_annotations" => form.no_annotations = true,
                "global_annotations" => form.global_annotations = true,
                "serializer" if value != "json" => {
                    let message = format!("The serializer {value:?} is not supported: answers are JSON only");
                    return Err(Refusal::bad_request(message));
                }
                name => refuse(name)?,
            }
        }
        let queries = [by_tsuid, by_metric].concat();
        if queries.is_empty() {
            return Err(Refusal::bad_request("Missing sub queries: there is neither 'm' nor 'tsuid'"));
        }
        let end = end.as_deref().filter(|end| !end.is_empty());
        let (start, end) =
            times(start.as_deref().filter(|start| !start.is_empty()), end, zone_of_query, now)?;
        let cuts = vec![PointLimits::default(); queries.len()];
        let query = Query { start, end, zone: zone_of_query, use_calendar: false, queries };
        Ok(Self { query, cuts, form, delete: false })
    }
}

fn refuse(name: &str) -> Result<(), Refusal> {
    match ABSENT.iter().find(|(absent, _)| *absent == name) {
        None => Ok(()),
        Some((name, why)) => Err(Refusal::bad_request(format!("'{name}' is not supported: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_count_by_their_presence_and_tsuids_come_first() {
        let request = QueryRequest::of_parameters(
            "start=1&end=&m=sum:cpu&m=sum:cpu&tsuid=max:000161&ms=false&arrays&show_tsuids=&show_query&show_stats&show_summary%20&no_annotations&global_annotations&u=me&p=x&_=5",
            9_000,
        );
        let request = request.unwrap();
        let all = AnswerForm {
            milliseconds: true,
            arrays: true,
            tsuids: true,
            query: true,
            stats: true,
            summary: true,
            no_annotations: true,
            global_annotations: true,
        };
        assert_eq!(request.form, all);
        assert_eq!((request.query.start, request.query.end), (1_000, 9_000));
        let aggregators: Vec<&str> =
            request.query.queries.iter().map(|sub| sub.aggregator.as_str()).collect();
        assert_eq!(aggregators, ["max", "sum"]);
    }

    #[test]
    fn a_time_is_read_in_the_zone() {
        let request =
            QueryRequest::of_parameters("start=2013/01/01&m=sum:cpu&tz=Asia/Shanghai", i64::MAX / 2).unwrap();
        assert_eq!(request.query.start, 1_356_969_600_000);
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (wrong, part) in [
            ("m=sum:cpu", "Missing start time"),
            ("start=1", "Missing sub queries"),
            ("start=1&m=sum", "not enough :-separated parts"),
            ("start=1&m=sum:cpu&exp=x", "'exp'"),
            ("start=1&m=sum:cpu&jsonp=x", "'jsonp'"),
            ("start=1&m=sum:cpu&delete", "'delete'"),
            ("start=1&m=sum:cpu&serializer=xml", "xml"),
            ("start=1&m=sum:cpu&tz=Mars", "Mars"),
        ] {
            let refusal = QueryRequest::of_parameters(wrong, 0).unwrap_err();
            assert!(refusal.message().contains(part), "{wrong}: {}", refusal.message());
        }
    }
}
