//! The streams that a run writes: each is one sensor, and its rows follow from their number.

use std::fmt::Write as _;

/// The time between two rows of a stream, milliseconds.
const STEP_MS: i64 = 1;

/// Streams of one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Streams {
    pub(super) count: u64,
    pub(super) fields: u32,
    pub(super) prefix: String,
    /// The time of the first rows.
    pub(super) start_ms: i64,
}

impl Streams {
    /// The name of a stream's sensor.
    pub(super) fn name(&self, stream: u64) -> String {
        format!("{}{stream}", self.prefix)
    }

    /// The time of a row.
    pub(super) fn millis(&self, row: u64) -> i64 {
        self.start_ms + row.cast_signed() * STEP_MS
    }

    /// A value: a number with two decimals, different from row to row.
    pub(super) fn value(stream: u64, row: u64, field: u32) -> f64 {
        ((row * 37 + stream * 11 + u64::from(field) * 101) % 20_000) as f64 / 100.0
    }

    /// The body of an upload of rows from `first` on.
    pub(super) fn body(&self, stream: u64, first: u64, rows: u64) -> String {
        let mut text = String::from("{\"properties\":{\"fields\":[{\"name\":\"timestamp\"}");
        for field in 0..self.fields {
            let _ = write!(text, ",{{\"name\":\"f{field}\"}}");
        }
        text.push_str("],\"values\":[");
        for row in first..first + rows {
            if row > first {
                text.push(',');
            }
            let _ = write!(text, "[{}", self.millis(row));
            for field in 0..self.fields {
                let _ = write!(text, ",{}", Self::value(stream, row, field));
            }
            text.push(']');
        }
        text + "]}}"
    }

    /// The file of a stream's sensor for a server of ours. No device feeds it, so its only rows are those of the run.
    pub(super) fn descriptor(&self, stream: u64) -> String {
        let name = self.name(stream);
        let structure: String = (0..self.fields)
            .map(|field| format!("      <field name=\"f{field}\" type=\"double\"/>\n"))
            .collect();
        let names: Vec<String> = (0..self.fields).map(|field| format!("f{field}")).collect();
        let names = names.join(", ");
        format!(
            "<virtual-sensor name=\"{name}\">\n  <processing-class>\n    <class-name>Bridge</class-name>\n    <output-structure>\n\
             {structure}    </output-structure>\n  </processing-class>\n  <streams>\n    <stream name=\"input\">\n\
             \x20     <source alias=\"rows\" storage-size=\"1\" sampling-rate=\"1\">\n        <address wrapper=\"tacho\">\n\
             \x20         <predicate key=\"device\">{name}_feed</predicate>\n        </address>\n\
             \x20       <query>select {names}, timed from wrapper</query>\n      </source>\n\
             \x20     <query>select {names}, timed from rows</query>\n    </stream>\n  </streams>\n</virtual-sensor>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_has_its_rows() {
        let streams = Streams { count: 2, fields: 2, prefix: "s".to_owned(), start_ms: 1_000 };
        let expected = r#"{"properties":{"fields":[{"name":"timestamp"},{"name":"f0"},{"name":"f1"}],"values":[[1001,0.48,1.49],[1002,0.85,1.86]]}}"#;
        assert_eq!(streams.body(1, 1, 2), expected);
        let descriptor = streams.descriptor(1);
        assert!(
            descriptor.contains("name=\"s1\"") && descriptor.contains("select f0, f1, timed from wrapper"),
            "{descriptor}"
        );
    }
}
