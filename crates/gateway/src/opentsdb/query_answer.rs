//! The answer of a query as JSON text, in pieces.

use std::fmt::{self, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use serde_json::json;
use timeseries::Source;
use timeseries::opentsdb::{Answer, QueryError, Values, run, tsuid};

use super::annotation_query::QueryNotes;
use super::limits::PIECE_BYTES;
use super::query_request::{AnswerForm, QueryRequest, shown};

/// Runs a query and sends its answer as JSON text, piece by piece, until `send` returns `Break`.
pub(super) fn send_answer(
    request: &QueryRequest,
    source: &dyn Source,
    notes: &QueryNotes,
    send: &mut dyn FnMut(String) -> ControlFlow<()>,
) -> Result<(), QueryError> {
    let began = Instant::now();
    let mut writer = Writer { text: String::from("["), send, points: 0, answers: 0 };
    let missing = request.missing();
    let (global, annotated) = (notes.global()?, notes.annotates_series()?);
    let mut ended = ControlFlow::Continue(());
    let mut unread = Ok(());
    run(&request.query, source, &mut |mut answer| {
        request.cuts[answer.query].apply(&mut answer.line);
        let series = if annotated { answer.series.as_slice() } else { &[] };
        let annotations = match notes.of_series(&answer.metric, series) {
            Ok(annotations) => format!("{annotations}{global}"),
            Err(error) => {
                unread = Err(error);
                ended = ControlFlow::Break(());
                return ended;
            }
        };
        ended = writer.answer(request, missing[answer.query], &annotations, &answer);
        ended
    })?;
    unread?;
    if ended.is_continue() {
        // Nobody waits for what a closed receiver does not take.
        let _ = writer.finish(request.form, began);
    }
    Ok(())
}

struct Writer<'a> {
    text: String,
    send: &'a mut dyn FnMut(String) -> ControlFlow<()>,
    points: u64,
    answers: u64,
}

impl Writer<'_> {
    fn answer(
        &mut self,
        request: &QueryRequest,
        missing: &str,
        annotations: &str,
        answer: &Answer,
    ) -> ControlFlow<()> {
        self.comma();
        self.head(request, answer);
        self.text.push_str(annotations);
        let points = self.points(request.form, missing, answer)?;
        if request.form.stats {
            let stats = json!({ "emittedDPs": points, "aggregatedSeries": answer.series.len() });
            let _ = write!(self.text, ",\"stats\":{stats}");
        }
        self.text.push('}');
        self.points += points;
        self.answers += 1;
        self.send_full()
    }

    /// Writes what an answer says before its points.
    fn head(&mut self, request: &QueryRequest, answer: &Answer) {
        let tags = TagsJson(&answer.tags);
        let (metric, others) = (json!(answer.metric), json!(answer.aggregate_tags));
        // Writing to a text does not fail.
        let _ = write!(self.text, "{{\"metric\":{metric},\"tags\":{tags},\"aggregateTags\":{others}");
        if request.form.query {
            let query = shown(&request.query.queries[answer.query], answer.query);
            let _ = write!(self.text, ",\"query\":{query}");
        }
        if request.form.tsuids {
            let mut tsuids: Vec<String> =
                answer.series.iter().map(|tags| tsuid(&answer.metric, tags)).collect();
            tsuids.sort_unstable();
            let _ = write!(self.text, ",\"tsuids\":{}", json!(tsuids));
        }
    }

    fn finish(&mut self, form: AnswerForm, began: Instant) -> ControlFlow<()> {
        if form.summary {
            self.comma();
            let millis = began.elapsed().as_secs_f64() * 1000.0;
            let summary = json!({ "emittedDPs": self.points, "answers": self.answers, "totalTime": millis });
            let _ = write!(self.text, "{{\"statsSummary\":{summary}}}");
        }
        self.text.push(']');
        (self.send)(std::mem::take(&mut self.text))
    }

    /// A comma, unless this is the first element.
    fn comma(&mut self) {
        if self.answers > 0 {
            self.text.push(',');
        }
    }

    /// Writes the points and returns their number. Of several in one second the last one counts when times are seconds.
    fn points(&mut self, form: AnswerForm, missing: &str, answer: &Answer) -> ControlFlow<(), u64> {
        let (open, close) = if form.arrays { ('[', ']') } else { ('{', '}') };
        let _ = write!(self.text, ",\"dps\":{open}");
        let time = |millis: i64| if form.milliseconds { millis } else { millis.div_euclid(1000) };
        let times = &answer.line.times;
        let mut count = 0;
        for (at, millis) in times.iter().enumerate() {
            let shown = time(*millis);
            if times.get(at + 1).is_some_and(|next| time(*next) == shown) {
                continue;
            }
            if count > 0 {
                self.text.push(',');
            }
            count += 1;
            // Writing to a text does not fail.
            let _ =
                if form.arrays { write!(self.text, "[{shown},") } else { write!(self.text, "\"{shown}\":") };
            write_value(&mut self.text, &answer.line.values, at, missing);
            if form.arrays {
                self.text.push(']');
            }
            self.send_full()?;
        }
        self.text.push(close);
        ControlFlow::Continue(count)
    }

    fn send_full(&mut self) -> ControlFlow<()> {
        match self.text.len() >= PIECE_BYTES {
            true => (self.send)(std::mem::take(&mut self.text)),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Tags as a JSON object.
pub(super) struct TagsJson<'a>(pub(super) &'a [(String, String)]);

impl fmt::Display for TagsJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (at, (name, value)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", json!(name), json!(value))?;
        }
        f.write_char('}')
    }
}

fn write_value(text: &mut String, values: &Values, at: usize, missing: &str) {
    match values {
        // Writing to a text does not fail.
        Values::Integers(values) => drop(write!(text, "{}", values[at])),
        Values::Floats(values) => write_float(text, values[at], missing),
    }
}

/// Writes a float as JSON: numbers that JSON does not have as texts, and `missing` for NaN.
pub(super) fn write_float(text: &mut String, value: f64, missing: &str) {
    // Writing to a text does not fail.
    let _ = match value {
        value if value.is_nan() => write!(text, "{missing}"),
        value if value.is_finite() => write!(text, "{value:?}"),
        value if value > 0.0 => write!(text, "\"Infinity\""),
        _ => write!(text, "\"-Infinity\""),
    };
}

#[cfg(test)]
mod tests {
    use timeseries::opentsdb::Line;

    use super::*;

    fn written(form: AnswerForm, line: Line) -> String {
        let request = QueryRequest::of_parameters("start=1&m=sum:cpu{host=*}", 9_000).unwrap();
        let request = QueryRequest { form, ..request };
        let answer = Answer {
            query: 0,
            metric: "cpu".into(),
            tags: vec![("host".into(), "a".into())],
            aggregate_tags: vec!["zone".into()],
            series: vec![vec![("host".into(), "a".into())]],
            line,
        };
        let mut sent = String::new();
        let mut send = |piece: String| {
            sent.push_str(&piece);
            ControlFlow::Continue(())
        };
        let mut writer = Writer { text: String::from("["), send: &mut send, points: 0, answers: 0 };
        let _ = writer.answer(&request, "null", "", &answer);
        let _ = writer.finish(form, Instant::now());
        sent
    }

    #[test]
    fn points_are_members_by_seconds_or_arrays_by_milliseconds() {
        let line = Line { times: vec![1_000, 1_500, 2_000], values: Values::Integers(vec![1, 2, 3]) };
        assert_eq!(
            written(AnswerForm::default(), line.clone()),
            r#"[{"metric":"cpu","tags":{"host":"a"},"aggregateTags":["zone"],"dps":{"1":2,"2":3}}]"#
        );
        let form = AnswerForm { milliseconds: true, arrays: true, ..AnswerForm::default() };
        assert!(written(form, line).ends_with(r#""dps":[[1000,1],[1500,2],[2000,3]]}]"#));
    }

    #[test]
    fn floats_have_a_point_and_what_json_lacks_is_a_text() {
        let values = vec![5.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e20];
        let text = written(
            AnswerForm::default(),
            Line::floats((1..=5).map(|second| second * 1000).collect(), values),
        );
        assert!(text.contains(r#"{"1":5.0,"2":null,"3":"Infinity","4":"-Infinity","5":1e20}"#), "{text}");
    }

    #[test]
    fn an_answer_says_more_when_asked() {
        let form =
            AnswerForm { tsuids: true, query: true, stats: true, summary: true, ..AnswerForm::default() };
        let text = written(form, Line::floats(vec![1_000], vec![1.0]));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json[0]["tsuids"][0], "00036370750004686F7374000161");
        assert_eq!((&json[0]["query"]["index"], &json[0]["stats"]["emittedDPs"]), (&0.into(), &1.into()));
        assert_eq!(json[1]["statsSummary"]["emittedDPs"], 1);
    }
}
