//! The fields of a line, by the rules of InfluxDB.

use std::collections::HashMap;

use model::name;
use wire::line::{Field, LineValue, RawLine};

/// The name of times. No tag and no field has it.
pub(super) const TIME: &str = "time";

/// Up to so many fields each is compared with each. A table of them costs more.
const COMPARED_MAX: usize = 32;

/// Checks the names of the fields of a line. A key that is there twice must have values of one type; the last value counts.
///
/// # Errors
/// The fault in the words of InfluxDB.
pub(super) fn check_fields(line: &RawLine<'_, '_>) -> Result<(), String> {
    line.fields.iter().try_for_each(|(key, _)| name::check_key(key)).map_err(|error| error.to_string())?;
    if line.fields.iter().all(|(key, _)| key == TIME) {
        return Err(invalid_name("field name", "field", &line.series.measurement()));
    }
    let Some((first, second)) = conflict(line.fields) else { return Ok(()) };
    Err(format!(
        "field type conflict: input field {:?} on measurement {:?} is type {}, already exists as type {}",
        second.0,
        line.series.measurement(),
        type_name(&second.1),
        type_name(&first.1),
    ))
}

/// Why a field is left out of a line that is stored.
pub(super) fn dropped_field(line: &RawLine<'_, '_>) -> Option<String> {
    let is_there = line.fields.iter().any(|(key, _)| key == TIME);
    is_there.then(|| invalid_name("field name", "field", &line.series.measurement()))
}

/// The message for a tag or a field that has the name of times.
pub(super) fn invalid_name(what: &str, kind: &str, measurement: &str) -> String {
    format!("invalid {what}: input {kind} {TIME:?} on measurement {measurement:?} is invalid")
}

/// Two fields of one key and different types.
fn conflict<'l, 'a>(fields: &'l [Field<'a>]) -> Option<(&'l Field<'a>, &'l Field<'a>)> {
    if fields.len() <= COMPARED_MAX {
        return fields.iter().enumerate().find_map(|(index, second)| {
            let first = fields[..index].iter().find(|(key, _)| *key == second.0)?;
            (type_name(&first.1) != type_name(&second.1)).then_some((first, second))
        });
    }
    let mut known: HashMap<&str, &Field<'_>> = HashMap::with_capacity(fields.len());
    fields.iter().find_map(|second| {
        let first = *known.entry(&second.0).or_insert(second);
        (type_name(&first.1) != type_name(&second.1)).then_some((first, second))
    })
}

fn type_name(value: &LineValue<'_>) -> &'static str {
    match value {
        LineValue::F64(_) => "float",
        LineValue::I64(_) => "integer",
        LineValue::U64(_) => "unsigned",
        LineValue::Bool(_) => "boolean",
        LineValue::Text(_) => "string",
    }
}

#[cfg(test)]
mod tests {
    use wire::line::Lines;

    use super::*;

    fn check(text: &str) -> Result<Option<String>, String> {
        let mut lines = Lines::starting_at(text.as_bytes(), 0);
        let line = lines.next_line().unwrap().unwrap();
        check_fields(&line).map(|()| dropped_field(&line))
    }

    #[test]
    fn a_key_has_one_type_and_a_name_other_than_time() {
        let invalid = r#"invalid field name: input field "time" on measurement "m" is invalid"#;
        assert_eq!(check("m a=1,b=2i,a=3 1"), Ok(None));
        assert_eq!(check("m time=1,b=2i 1"), Ok(Some(invalid.into())));
        assert_eq!(check("m time=1 1"), Err(invalid.into()));
        let conflict = r#"field type conflict: input field "a" on measurement "m" is type integer, already exists as type float"#;
        assert_eq!(check("m a=1,b=2i,a=3i 1"), Err(conflict.into()));
        let many: Vec<String> = (0..40).map(|n| format!("f{n}=1")).collect();
        assert_eq!(check(&format!("m {} 1", many.join(","))), Ok(None));
        assert_eq!(check(&format!("m a=1,{},a=3i 1", many.join(","))), Err(conflict.into()));
    }
}
