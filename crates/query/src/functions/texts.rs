//! PostgreSQL's functions of text.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;
use regex::Captures;

use super::by_value::{ArgumentKind, Form, Value, function};
use crate::QueryError;
use crate::error::INVALID_PARAMETER;
use crate::values::patterns;
use crate::values::regex::BoundedRegex;

use ArgumentKind::{Bool, Int, Text};

const fn form(
    takes: &'static [ArgumentKind],
    gives: ArgumentKind,
    compute: fn(&[Value<'_>]) -> Result<Value<'static>, QueryError>,
) -> Form {
    Form { takes, gives, compute }
}

/// The pattern of `SIMILAR TO` as a regular expression.
const SIMILAR_TO: &[Form] = &[
    form(&[Text], Text, |args| Ok(patterns::similar_to(args[0].text(), Some('\\'))?.into())),
    form(&[Text, Text], Text, |args| {
        Ok(patterns::similar_to(args[0].text(), patterns::escape_of(args[1].text())?)?.into())
    }),
];

/// The pattern of `~` in the language of the `regex` crate.
const REGEX: &[Form] = &[form(&[Text], Text, |args| Ok(patterns::regex(args[0].text())?.into()))];

/// `substring(text FROM pattern)`
const SUBSTRING: &[Form] = &[form(&[Text, Text], Text, |args| {
    let regex = BoundedRegex::of_postgres(args[1].text(), "")?;
    let found = regex.captures(args[0].text())?.and_then(|found| found.get(1).or_else(|| found.get(0)));
    Ok(found.map_or(Value::Null, |found| found.as_str().to_owned().into()))
})];

const REPLACE: &[Form] = &[
    form(&[Text, Text, Text], Text, |args| replaced(args, "")),
    form(&[Text, Text, Text, Text], Text, |args| replaced(args, args[3].text())),
];
const LIKE: &[Form] = &[
    form(&[Text, Text], Bool, |args| is_match(args, "")),
    form(&[Text, Text, Text], Bool, |args| is_match(args, args[2].text())),
];
const COUNT: &[Form] = &[
    form(&[Text, Text], Int, |args| counted(args, 1, "")),
    form(&[Text, Text, Int], Int, |args| counted(args, args[2].int(), "")),
    form(&[Text, Text, Int, Text], Int, |args| counted(args, args[2].int(), args[3].text())),
];
const SUBSTR: &[Form] = &[
    form(&[Text, Text], Text, |args| nth(args, 1, 1, "")),
    form(&[Text, Text, Int], Text, |args| nth(args, args[2].int(), 1, "")),
    form(&[Text, Text, Int, Int], Text, |args| nth(args, args[2].int(), args[3].int(), "")),
    form(&[Text, Text, Int, Int, Text], Text, |args| nth(args, args[2].int(), args[3].int(), args[4].text())),
];
const INSTR: &[Form] = &[
    form(&[Text, Text], Int, |args| position(args, 1, 1)),
    form(&[Text, Text, Int], Int, |args| position(args, args[2].int(), 1)),
    form(&[Text, Text, Int, Int], Int, |args| position(args, args[2].int(), args[3].int())),
];

/// All functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [
        ("similar_to_regex", SIMILAR_TO),
        ("posix_regex", REGEX),
        ("substring_of_regex", SUBSTRING),
        ("regexp_replace", REPLACE),
        ("regexp_like", LIKE),
        ("regexp_count", COUNT),
        ("regexp_substr", SUBSTR),
        ("regexp_instr", INSTR),
    ]
    .map(|(name, forms)| function(name, forms))
    .into()
}

/// `\\1` and `\\&` in a replacement stand for a group and for the whole match.
fn replaced(args: &[Value<'_>], flags: &str) -> Result<Value<'static>, QueryError> {
    let regex = BoundedRegex::of_postgres(args[1].text(), flags)?;
    let (text, replacement) = (args[0].text(), args[2].text());
    let replace = |found: &Captures<'_>| {
        let mut out = String::new();
        let mut chars = replacement.chars();
        while let Some(c) = chars.next() {
            let next = if c == '\\' { chars.next() } else { None };
            match (c, next) {
                ('\\', Some(digit @ '1'..='9')) => {
                    let group = digit as usize - '0' as usize;
                    out.push_str(found.get(group).map_or("", |group| group.as_str()));
                }
                ('\\', Some('&')) => out.push_str(&found[0]),
                ('\\', Some('\\') | None) => out.push('\\'),
                ('\\', Some(other)) => out.extend(['\\', other]),
                _ => out.push(c),
            }
        }
        out
    };
    let matches_max = if flags.contains('g') { usize::MAX } else { 1 };
    let (mut out, mut copied) = (String::new(), 0);
    for found in regex.captures_each(text).take(matches_max) {
        let found = found?;
        let whole = found.get_match();
        out.push_str(&text[copied..whole.start()]);
        out.push_str(&replace(&found));
        copied = whole.end();
    }
    out.push_str(&text[copied..]);
    Ok(out.into())
}

fn is_match(args: &[Value<'_>], flags: &str) -> Result<Value<'static>, QueryError> {
    without_global(flags)?;
    let regex = BoundedRegex::of_postgres(args[1].text(), flags)?;
    Ok(Value::Bool(regex.is_match(args[0].text())?))
}

fn without_global(flags: &str) -> Result<(), QueryError> {
    if flags.contains('g') {
        let message = "this function does not support the option \"g\" of a regular expression";
        return Err(QueryError::value(INVALID_PARAMETER, message));
    }
    Ok(())
}

/// Returns the rest of a text from a character on.
fn from(text: &str, start: i64) -> Result<&str, QueryError> {
    if start < 1 {
        return Err(QueryError::value(
            INVALID_PARAMETER,
            format!("invalid value for parameter \"start\": {start}"),
        ));
    }
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    Ok(text.char_indices().nth(skipped).map_or("", |(at, _)| &text[at..]))
}

fn counted(args: &[Value<'_>], start: i64, flags: &str) -> Result<Value<'static>, QueryError> {
    without_global(flags)?;
    let regex = BoundedRegex::of_postgres(args[1].text(), flags)?;
    let mut count = 0;
    for found in regex.find_each(from(args[0].text(), start)?) {
        found?;
        count += 1;
    }
    Ok(Value::Int(count))
}

fn index(number: i64) -> Result<usize, QueryError> {
    usize::try_from(number).ok().and_then(|number| number.checked_sub(1)).ok_or_else(|| {
        QueryError::value(INVALID_PARAMETER, format!("invalid value for parameter \"n\": {number}"))
    })
}

fn nth(args: &[Value<'_>], start: i64, number: i64, flags: &str) -> Result<Value<'static>, QueryError> {
    without_global(flags)?;
    let regex = BoundedRegex::of_postgres(args[1].text(), flags)?;
    let found = regex.find_each(from(args[0].text(), start)?).nth(index(number)?).transpose()?;
    Ok(found.map_or(Value::Null, |found| found.as_str().to_owned().into()))
}

fn position(args: &[Value<'_>], start: i64, number: i64) -> Result<Value<'static>, QueryError> {
    let regex = BoundedRegex::of_postgres(args[1].text(), "")?;
    let rest = from(args[0].text(), start)?;
    let found = regex.find_each(rest).nth(index(number)?).transpose()?;
    Ok(Value::Int(found.map_or(0, |found| rest[..found.start()].chars().count() as i64 + start)))
}
