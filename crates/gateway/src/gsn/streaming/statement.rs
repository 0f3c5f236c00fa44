//! The statement of a stream: `select FIELDS from SENSOR where CONDITIONS`.

use super::super::condition::{Condition, parse_joined};
use super::super::refusal::Refusal;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub(super) sensor: String,
    /// The names of the fields; `None` for all.
    pub(super) fields: Option<Vec<String>>,
    pub(super) conditions: Vec<Condition>,
}

impl Statement {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let wrong = || {
            Refusal::argument(format!(
                "{text:?} is not a statement of a stream; write select FIELDS from SENSOR, or with where and comparisons of fields with \
                 numbers, such as select temperature from meadow where temperature > 20"
            ))
        };
        let words: Vec<&str> = text.trim().trim_end_matches(';').split_whitespace().collect();
        let at = |word: &str| words.iter().position(|one| one.eq_ignore_ascii_case(word));
        let from = at("from").ok_or_else(wrong)?;
        let is_select = words[0].eq_ignore_ascii_case("select");
        let end = at("where").unwrap_or(words.len());
        if !is_select || from < 2 || end != from + 2 {
            return Err(wrong());
        }
        let fields: Vec<String> =
            words[1..from].concat().split(',').map(|name| name.trim().to_owned()).collect();
        let fields = (fields != ["*"]).then_some(fields);
        let conditions = words.get(end + 1..).unwrap_or_default().join(" ");
        if end < words.len() && conditions.is_empty() {
            return Err(wrong());
        }
        let conditions = parse_joined(&conditions)?;
        Ok(Self { sensor: words[from + 1].to_owned(), fields, conditions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_fields_sensor_and_conditions() {
        let all = Statement::parse("select * from Meadow").unwrap();
        assert_eq!((all.sensor.as_str(), all.fields, all.conditions.len()), ("Meadow", None, 0));
        let some = Statement::parse("SELECT a , b FROM meadow WHERE a > 1 AND b <= 2;").unwrap();
        assert_eq!(some.fields, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(some.conditions.len(), 2);
        for text in [
            "",
            "select",
            "select * from",
            "select from a",
            "delete * from a",
            "select * from a, b",
            "select * from a where",
            "select * from a where b",
            "select * from a order by b",
        ] {
            assert_eq!(Statement::parse(text).unwrap_err().0.status, 400, "{text}");
        }
    }
}
