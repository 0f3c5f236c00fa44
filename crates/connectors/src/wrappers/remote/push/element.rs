//! An element in the XML of Java's library XStream, as GSN pushes it.

use model::Value;
use roxmltree::{Document, Node};

use crate::time::iso;

/// An element: its time in milliseconds, and the fields that have values.
#[derive(Debug, PartialEq)]
pub(super) struct Element {
    pub(super) ms: i64,
    pub(super) fields: Vec<(String, Value)>,
}

/// Reads an element. A `keepalive` of GSN is not an element.
///
/// # Errors
/// The text is not XML of an element, or its time is not in UTC.
pub(super) fn read(text: &str) -> Result<Option<Element>, String> {
    let document = Document::parse(text).map_err(|error| format!("it is not XML: {error}"))?;
    let root = document.root_element();
    if root.tag_name().name() != "stream-element" {
        return Err(format!("it is <{}>, and no <stream-element>", root.tag_name().name()));
    }
    let fields = || root.children().filter(|node| node.has_tag_name("field"));
    if fields().any(|field| field.attribute("name") == Some("keepalive")) {
        return Ok(None);
    }
    let time = root.attribute("timestamp").ok_or("it has no timestamp")?;
    let ms = millis(time)
        .ok_or_else(|| format!("its timestamp {time:?} is not a time such as 2026-11-27 20:15:30.125 UTC"))?;
    let fields = fields().map(field).filter_map(Result::transpose).collect::<Result<_, _>>()?;
    Ok(Some(Element { ms, fields }))
}

/// The name and the value of a field; `None` if it has no value.
fn field(node: Node<'_, '_>) -> Result<Option<(String, Value)>, String> {
    let name = node.attribute("name").ok_or("a field has no name")?.to_lowercase();
    if node.attribute("is-null") == Some("true") {
        return Ok(None);
    }
    let text = node.text().unwrap_or_default();
    if node.attribute("type") != Some("numeric") {
        return Ok(Some((name, Value::String(text.into()))));
    }
    let number = text.trim().parse::<f64>();
    let number = number.map_err(|_| format!("{text:?} of the field {name} is not a number"))?;
    Ok(Some((name, Value::F64(number))).filter(|_| number.is_finite()))
}

/// Milliseconds since 1970 of a time such as `2026-11-27 20:15:30.125 UTC`. The digits after the point are a number of milliseconds:
/// GSN writes 5 ms as `.5`.
fn millis(text: &str) -> Option<i64> {
    let time = text.trim().strip_suffix("UTC").or_else(|| text.trim().strip_suffix("GMT"))?.trim_end();
    let (time, ms) = time.split_once('.').unwrap_or((time, "0"));
    let (date, time) = time.split_once(' ')?;
    let numbers = |text: &str, sign: char| -> Option<[i64; 3]> {
        let numbers: Option<Vec<i64>> = text.split(sign).map(|part| part.parse().ok()).collect();
        numbers?.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    let ms: i64 = ms.parse().ok().filter(|ms| (0..1_000).contains(ms))?;
    let is_in = |number: i64, last: i64| (0..=last).contains(&number);
    let is_time = is_in(hour, 23) && is_in(minute, 59) && is_in(second, 59);
    let is_date = is_in(year, 9_999) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let seconds = hour * 3_600 + minute * 60 + second;
    let since_1970 =
        (is_time && is_date).then(|| (days(year, month, day) * 86_400 + seconds) * 1_000 + ms)?;
    // A day that its month does not have is another date.
    let is_of_month = iso(since_1970).starts_with(&format!("{year:04}-{month:02}-{day:02}T"));
    is_of_month.then_some(since_1970)
}

/// Days of a date of the Gregorian calendar since 1970-01-01.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // A year that begins in March has its leap day at its end.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let of_years = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    of_years + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_has_a_time_and_the_fields_with_values() {
        let text = "<stream-element timestamp=\"2026-11-27 20:15:30.5 UTC\">\n  <field name=\"Temperature\" type=\"numeric\">21.5</field>\n  \
                    <field name=\"readings\" is-null=\"true\" type=\"numeric\"/>\n  <field name=\"state\" type=\"string\">a&lt;b &#176;</field>\n\
                    </stream-element>";
        let fields = vec![
            ("temperature".to_owned(), Value::F64(21.5)),
            ("state".to_owned(), Value::String("a<b °".into())),
        ];
        assert_eq!(read(text), Ok(Some(Element { ms: 1_795_810_530_005, fields })));
    }

    #[test]
    fn what_is_not_an_element_is_refused() {
        let element = |time: &str, field: &str| {
            format!("<stream-element timestamp=\"{time}\">{field}</stream-element>")
        };
        let now = "2026-11-27 20:15:30.125 UTC";
        for (text, expected) in [
            ("no".to_owned(), "not XML"),
            ("<a/>".to_owned(), "it is <a>"),
            (element("2026-11-27 20:15:30.125 CET", ""), "not a time such as"),
            (element("2026-13-27 20:15:30.125 UTC", ""), "not a time such as"),
            (element("2026-02-31 20:15:30.125 UTC", ""), "not a time such as"),
            (element(now, "<field name=\"x\" type=\"numeric\">one</field>"), "is not a number"),
            (element(now, "<field type=\"numeric\">1</field>"), "has no name"),
            ("<stream-element/>".to_owned(), "no timestamp"),
        ] {
            let refused = read(&text).expect_err(&text);
            assert!(refused.contains(expected), "{text}: {refused}");
        }
        let keep_alive = "<field name=\"keepalive\" type=\"string\">keep-alive message</field>";
        assert_eq!(read(&element("292269055-12-02 16:47:04.192 UTC", keep_alive)), Ok(None));
    }

    #[test]
    fn times_are_milliseconds_since_1970() {
        assert_eq!(millis("1970-01-01 00:00:00.0 UTC"), Some(0));
        assert_eq!(millis("2000-02-29 12:00:00.7 GMT"), Some(951_825_600_007));
        assert_eq!(millis("2026-11-27 20:15:30 UTC"), Some(1_795_810_530_000));
    }
}
