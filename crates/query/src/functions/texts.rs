//! Functions of text as PostgreSQL has them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use super::by_value::{Form, Kind, Value, function};
use crate::QueryError;
use crate::error::INVALID_PARAMETER;
use crate::semantics::patterns;

use Kind::Text;

const fn form(
    takes: &'static [Kind],
    gives: Kind,
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

/// The pattern of `~` as the library writes it.
const REGEX: &[Form] = &[form(&[Text], Text, |args| Ok(patterns::regex(args[0].text())?.into()))];

/// `substring(text FROM pattern)`
const SUBSTRING: &[Form] = &[form(&[Text, Text], Text, |args| {
    let regex = compiled(&patterns::regex(args[1].text())?)?;
    let found = regex.captures(args[0].text()).and_then(|found| found.get(1).or_else(|| found.get(0)));
    Ok(found.map_or(Value::Null, |found| found.as_str().to_owned().into()))
})];

/// All of them.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [("similar_to_escape", SIMILAR_TO), ("posix_regex", REGEX), ("substring_of_regex", SUBSTRING)]
        .map(|(name, forms)| function(name, forms))
        .into()
}

fn compiled(regex: &str) -> Result<regex::Regex, QueryError> {
    regex::Regex::new(regex).map_err(|error| QueryError::value(INVALID_PARAMETER, error.to_string()))
}
