//! Objects in the XML of Java's library XStream, as GSN writes them: the structure, then an element for each row.

use super::super::read::{Row, Selection};
use super::super::time::{TimeFormat, TimeText};
use super::super::value::{Value, ValueKind};
use super::super::xml::{escape, escaped};

/// What begins a stream, before the structure.
pub(super) const BEGIN: &str = "<object-stream>\n";

/// The fields of the elements.
pub(super) fn structure(selection: &Selection) -> String {
    let mut text = String::from("  <strcture-array>\n");
    for column in &selection.fields {
        let Ok(field) = selection.sensor.field(&column.name) else { continue };
        text.push_str(&format!(
            "    <strcture>\n      <description>{}</description>\n      <name>{}</name>\n      <dataTypeID>{}</dataTypeID>\n      \
             <type>{}</type>\n      <unit>{}</unit>\n    </strcture>\n",
            escaped(&field.description),
            escaped(&field.name),
            type_number(&field.type_name),
            escaped(&field.type_name),
            escaped(&field.unit)
        ));
    }
    text + "  </strcture-array>\n"
}

/// GSN's number of a type.
fn type_number(type_name: &str) -> u8 {
    match type_name.split(['(', ':']).next().unwrap_or_default() {
        "char" => 1,
        "integer" => 2,
        "bigint" => 3,
        "binary" => 4,
        "double" => 5,
        "tinyint" => 7,
        "smallint" => 8,
        "float" => 9,
        // string and varchar
        _ => 0,
    }
}

/// What ends a stream.
pub(super) const END: &str = "</object-stream>\n";

/// The element that states that a stream without rows lives. Its time is the earliest of Java.
pub(super) const KEEP_ALIVE: &str = "  <stream-element timestamp=\"292269055-12-02 16:47:04.192 UTC\">\n    \
     <field name=\"keepalive\" type=\"string\">keep-alive message</field>\n  </stream-element>\n";

/// Writes elements.
#[derive(Debug)]
pub(super) struct Elements {
    times: TimeText,
}

impl Elements {
    pub(super) fn new() -> Self {
        Self { times: TimeText::new(TimeFormat::Blank) }
    }

    pub(super) fn push(&mut self, selection: &Selection, row: &Row<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"  <stream-element timestamp=\"");
        self.times.write(row.millis(), out);
        out.extend_from_slice(format!(".{} UTC\">\n", row.millis().rem_euclid(1_000)).as_bytes());
        for ((at, column), value) in selection.fields.iter().enumerate().zip(row.values) {
            let kind = selection.kind(at);
            let is_null = if value.is_none() { " is-null=\"true\"" } else { "" };
            let type_name = if kind == ValueKind::Text { "string" } else { "numeric" };
            let name = escaped(&column.name);
            out.extend_from_slice(
                format!("    <field name=\"{name}\"{is_null} type=\"{type_name}\"").as_bytes(),
            );
            match value {
                None => {
                    out.extend_from_slice(b"/>\n");
                    continue;
                }
                Some(Value::Text(text)) => {
                    out.push(b'>');
                    escape(text, out);
                }
                // Numbers of all types are doubles here.
                Some(value) => {
                    out.push(b'>');
                    let kind = if kind == ValueKind::Text { kind } else { ValueKind::Double };
                    kind.write(*value, out);
                }
            }
            out.extend_from_slice(b"</field>\n");
        }
        out.extend_from_slice(b"  </stream-element>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sensor::tests::meadow;
    use super::*;

    #[test]
    fn a_stream_has_its_structure_and_its_elements() {
        let selection = Selection::all(meadow());
        let structure = format!("{BEGIN}{}", structure(&selection));
        assert!(structure.starts_with(
            "<object-stream>\n  <strcture-array>\n    <strcture>\n      <description>of the air</description>\n      \
             <name>temperature</name>\n      <dataTypeID>5</dataTypeID>\n      <type>double</type>\n      <unit>&#176;C</unit>\n    \
             </strcture>\n"
        ));
        let values = [Some(Value::F64(21.5)), Some(Value::I64(3)), None];
        let mut out = Vec::new();
        Elements::new().push(
            &selection,
            &Row { micros: 1_795_810_530_005_000, interval: None, values: &values },
            &mut out,
        );
        let expected = "  <stream-element timestamp=\"2026-11-27 20:15:30.5 UTC\">\n    <field name=\"temperature\" type=\"numeric\">21.5</field>\n    \
                        <field name=\"readings\" type=\"numeric\">3.0</field>\n    <field name=\"state\" is-null=\"true\" type=\"string\"/>\n  \
                        </stream-element>\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(["varchar(20)", "float", "binary:x"].map(type_number), [0, 9, 4]);
    }
}
