//! The text of the result of one statement, in the shapes of InfluxDB.

use timeseries::influxql::{Head, Value};

use super::super::limits::PIECE_BYTES;
use super::answer_format::{Form, Format};
use super::values::{csv_text, csv_time, csv_value, json_text, json_time, json_value, show};

/// Writes the rows of one statement. What it has written can be taken after each row.
#[derive(Debug)]
pub(super) struct ResultText {
    form: Form,
    number: usize,
    /// Whether the answer has text of an earlier statement.
    begun: bool,
    out: Vec<u8>,
    /// The head of the rows that are being written.
    head: Option<Head>,
    /// Rows of the document that is being written, if the answer comes in chunks.
    chunk_rows: usize,
    chunk_begin: usize,
}

impl ResultText {
    /// The result of the statement with a number. `begun` indicates whether an earlier one has given text.
    pub(super) fn new(form: Form, number: usize, begun: bool) -> Self {
        Self { form, number, begun, out: Vec::new(), head: None, chunk_rows: 0, chunk_begin: 0 }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, head: &Head, values: &[Value]) {
        match self.form.format {
            Format::Json { .. } => self.json_row(head, values),
            Format::Csv => self.csv_row(head, values),
        }
    }

    /// Whether there is enough text to be sent.
    pub(super) fn is_full(&self) -> bool {
        match self.in_documents() {
            true => self.chunk_begin > 0,
            false => self.out.len() >= PIECE_BYTES,
        }
    }

    /// Whether the text is a sequence of documents. Only whole ones are sent, so that an error can follow them.
    fn in_documents(&self) -> bool {
        self.form.chunk.is_some() && matches!(self.form.format, Format::Json { .. })
    }

    /// Takes the text so far: up to the last row, or to the last whole document.
    pub(super) fn take(&mut self) -> Vec<u8> {
        if !self.in_documents() {
            return std::mem::take(&mut self.out);
        }
        let rest = self.out.split_off(self.chunk_begin);
        self.chunk_begin = 0;
        std::mem::replace(&mut self.out, rest)
    }

    /// Ends the result, and takes the text that is left.
    pub(super) fn end(mut self) -> Vec<u8> {
        if let Format::Json { .. } = self.form.format {
            match &self.head {
                Some(_) => self.out.extend_from_slice(b"]}]}"),
                None => self.out.extend(empty(self.form, self.number)),
            }
            if self.form.chunk.is_some() && self.head.is_some() {
                self.out.extend_from_slice(b"]}\n");
            }
        }
        self.out
    }

    fn json_row(&mut self, head: &Head, values: &[Value]) {
        let same = self.head.as_ref() == Some(head);
        if !same || self.is_chunk_complete() {
            self.json_head(head, same);
        } else {
            self.out.push(b',');
        }
        self.chunk_rows += 1;
        let mut separator = b'[';
        for (index, value) in values.iter().enumerate() {
            self.out.push(separator);
            separator = b',';
            match value {
                Value::Int(nanos) if index == 0 && head.timed => {
                    json_time(&mut self.out, self.form, head, *nanos);
                }
                value => json_value(&mut self.out, value),
            }
        }
        self.out.push(b']');
    }

    fn is_chunk_complete(&self) -> bool {
        let is_long = self.out.len() - self.chunk_begin >= PIECE_BYTES;
        self.form.chunk.is_some_and(|rows| self.chunk_rows >= rows || is_long)
    }

    /// Ends the series that is being written, and begins one. `same` states that the rows of that series continue.
    fn json_head(&mut self, head: &Head, same: bool) {
        match (&self.head, self.form.chunk) {
            (None, _) => self.json_begin(),
            (Some(_), None) => self.out.extend_from_slice(b"]},"),
            (Some(_), Some(_)) => {
                let series = if same { r#"],"partial":true}"# } else { "]}" };
                self.out.extend_from_slice(series.as_bytes());
                self.out.extend_from_slice(b"],\"partial\":true}]}\n");
                self.chunk_begin = self.out.len();
                self.json_begin();
            }
        }
        self.chunk_rows = 0;
        self.out.push(b'{');
        if !head.name.is_empty() {
            self.out.extend_from_slice(b"\"name\":");
            json_text(&mut self.out, &head.name);
            self.out.push(b',');
        }
        if !head.tags.is_empty() {
            let mut separator: &[u8] = b"\"tags\":{";
            for (tag, value) in &head.tags {
                self.out.extend_from_slice(separator);
                separator = b",";
                json_text(&mut self.out, tag);
                self.out.push(b':');
                json_text(&mut self.out, value);
            }
            self.out.extend_from_slice(b"},");
        }
        let mut separator: &[u8] = b"\"columns\":[";
        for column in &head.columns {
            self.out.extend_from_slice(separator);
            separator = b",";
            json_text(&mut self.out, column);
        }
        self.out.extend_from_slice(b"],\"values\":[");
        if !same {
            self.head = Some(head.clone());
        }
    }

    fn json_begin(&mut self) {
        let document = if self.form.chunk.is_some() { "{\"results\":[" } else { "" };
        show(&mut self.out, format_args!("{document}{{\"statement_id\":{},\"series\":[", self.number));
    }

    fn csv_row(&mut self, head: &Head, values: &[Value]) {
        if self.head.as_ref() != Some(head) {
            if self.head.as_ref().is_none_or(|own| own.columns != head.columns) {
                self.csv_columns(head);
            }
            self.head = Some(head.clone());
        }
        csv_text(&mut self.out, &head.name);
        self.out.push(b',');
        csv_text(&mut self.out, &tags_text(&head.tags));
        for (index, value) in values.iter().enumerate() {
            self.out.push(b',');
            match value {
                Value::Int(nanos) if index == 0 && head.timed => csv_time(&mut self.out, self.form, *nanos),
                value => csv_value(&mut self.out, value),
            }
        }
        self.out.push(b'\n');
    }

    fn csv_columns(&mut self, head: &Head) {
        if self.begun || self.head.is_some() {
            self.out.push(b'\n');
        }
        self.out.extend_from_slice(b"name,tags");
        for column in &head.columns {
            self.out.push(b',');
            csv_text(&mut self.out, column);
        }
        self.out.push(b'\n');
    }
}

/// Tags as line protocol writes them, without those that a series does not have.
fn tags_text(tags: &[(String, String)]) -> String {
    let escaped = |text: &str| text.replace(',', "\\,").replace('=', "\\=").replace(' ', "\\ ");
    let present = tags.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> =
        present.map(|(tag, value)| format!("{}={}", escaped(tag), escaped(value))).collect();
    pairs.join(",")
}

/// The result of a statement that returns no rows.
pub(super) fn empty(form: Form, number: usize) -> Vec<u8> {
    with_members(form, number, "")
}

/// The result of a statement that returns no rows but a warning.
pub(super) fn warning(form: Form, number: usize, text: &str) -> Vec<u8> {
    let text = serde_json::Value::from(text);
    with_members(form, number, &format!(r#","messages":[{{"level":"warning","text":{text}}}]"#))
}

fn with_members(form: Form, number: usize, members: &str) -> Vec<u8> {
    let result = format!("{{\"statement_id\":{number}{members}}}");
    match form {
        Form { format: Format::Csv, .. } => Vec::new(),
        Form { chunk: Some(_), .. } => format!("{{\"results\":[{result}]}}\n").into_bytes(),
        Form { chunk: None, .. } => result.into_bytes(),
    }
}

/// The end of a result that has an error. `rows` indicates whether rows of the statement were sent before; `begun`, whether the answer
/// has any text.
pub(super) fn failed(form: Form, number: usize, error: &str, rows: bool, begun: bool) -> Vec<u8> {
    let text = serde_json::Value::from(error);
    match form {
        Form { format: Format::Csv, .. } => {
            let mut out = if begun { b"\nerror\n".to_vec() } else { b"error\n".to_vec() };
            csv_text(&mut out, error);
            out.push(b'\n');
            out
        }
        Form { chunk: None, .. } if rows => format!("]}}],\"error\":{text}}}").into_bytes(),
        _ => with_members(form, number, &format!(",\"error\":{text}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: Form =
        Form { format: Format::Json { pretty: false }, chunk: None, epoch: Some(1_000_000_000) };

    fn head(host: &str) -> Head {
        Head {
            name: "cpu".into(),
            tags: vec![("host".into(), host.into())],
            columns: vec!["time".into(), "usage".into()],
            timed: true,
            zone: None,
        }
    }

    fn written(form: Form, rows: &[(&str, i64)]) -> String {
        let mut text = ResultText::new(form, 3, false);
        for (host, second) in rows {
            text.row(&head(host), &[Value::Int(second * 1_000_000_000), Value::Num(0.5)]);
        }
        String::from_utf8(text.end()).unwrap()
    }

    const ROWS: [(&str, i64); 4] = [("a", 1), ("a", 2), ("a", 3), ("b, c", -1)];

    #[test]
    fn rows_of_one_head_are_a_series() {
        let expected = r#"{"statement_id":3,"series":[{"name":"cpu","tags":{"host":"a"},"columns":["time","usage"],"values":[[1,0.5],[2,0.5],[3,0.5]]},{"name":"cpu","tags":{"host":"b, c"},"columns":["time","usage"],"values":[[-1,0.5]]}]}"#;
        assert_eq!(written(JSON, &ROWS), expected);
        assert_eq!(written(JSON, &[]), r#"{"statement_id":3}"#);
        let times = written(Form { epoch: None, ..JSON }, &ROWS);
        assert!(times.contains(r#"["1970-01-01T00:00:01Z",0.5]"#), "{times}");
    }

    #[test]
    fn each_chunk_is_a_document_that_says_whether_more_follows() {
        let chunked = Form { chunk: Some(2), ..JSON };
        let text = written(chunked, &ROWS);
        let documents: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let result = |index: usize| &documents[index]["results"][0];
        let partial =
            |index: usize| (result(index)["partial"] == true, result(index)["series"][0]["partial"] == true);
        assert_eq!([partial(0), partial(1), partial(2)], [(true, true), (true, false), (false, false)]);
        let rows = |index: usize| result(index)["series"][0]["values"].as_array().unwrap().len();
        assert_eq!([rows(0), rows(1), rows(2), documents.len()], [2, 1, 1, 3]);
        assert_eq!(written(chunked, &[]), "{\"results\":[{\"statement_id\":3}]}\n");
    }

    #[test]
    fn only_whole_chunks_are_taken() {
        let mut text = ResultText::new(Form { chunk: Some(1), ..JSON }, 0, false);
        let row = [Value::Int(0), Value::Null];
        text.row(&head("a"), &row);
        assert!(!text.is_full());
        text.row(&head("a"), &row);
        assert!(text.is_full());
        assert!(text.take().ends_with(b"\"partial\":true}]}\n"));
        assert!(!text.is_full());
        assert!(text.end().starts_with(b"{\"results\":["));
    }

    #[test]
    fn csv_has_a_header_for_each_set_of_columns() {
        let csv = Form { format: Format::Csv, chunk: None, epoch: None };
        let expected =
            "name,tags,time,usage\ncpu,host=a,1000000000,0.5\ncpu,\"host=b\\,\\ c\",2000000000,0.5\n";
        assert_eq!(written(csv, &[("a", 1), ("b, c", 2)]), expected);
        let mut text = ResultText::new(csv, 1, true);
        text.row(&head("a"), &[Value::Int(0), Value::text("x\"")]);
        let wide = Head { columns: vec!["key".into()], timed: false, tags: Vec::new(), ..head("a") };
        text.row(&wide, &[Value::Int(5)]);
        let expected = "\nname,tags,time,usage\ncpu,host=a,0,\"x\"\"\"\n\nname,tags,key\ncpu,,5\n";
        assert_eq!(String::from_utf8(text.end()).unwrap(), expected);
    }

    #[test]
    fn an_error_ends_a_result_wherever_it_is() {
        let json = |rows| String::from_utf8(failed(JSON, 1, "a \"b\"", rows, true)).unwrap();
        assert_eq!(json(false), r#"{"statement_id":1,"error":"a \"b\""}"#);
        let mut text = ResultText::new(JSON, 1, false);
        text.row(&head("a"), &[Value::Int(0), Value::Null]);
        let whole = format!("{}{}", String::from_utf8(text.take()).unwrap(), json(true));
        let parsed: serde_json::Value = serde_json::from_str(&whole).unwrap();
        assert_eq!(
            (&parsed["error"], parsed["series"][0]["values"].as_array().unwrap().len()),
            (&"a \"b\"".into(), 1)
        );
        let csv = Form { format: Format::Csv, ..JSON };
        assert_eq!(failed(csv, 1, "a, b", false, false), b"error\n\"a, b\"\n");
    }
}
