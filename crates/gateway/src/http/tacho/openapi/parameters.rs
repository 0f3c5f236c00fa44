//! The parameters of the query string of an operation: their description, and the check of a request against it.

use std::collections::HashSet;

use serde_json::{Value as JsonValue, json};

use super::words::{choices, hint, not_described, shown};
use crate::error::ApiError;
use crate::http::tools::request::{Params, split_keys};

/// A parameter of an operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

/// The values of a parameter.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Values of a type of JSON Schema.
    Type(String),
    /// One of these values.
    Choice(Vec<String>),
    /// Several values, separated by commas or in several parameters of the name.
    List(Box<Self>),
    /// ThingsBoard has the parameter, and this server does not. These values ask for what the server does anyway.
    Absent(Vec<String>),
}

impl Parameter {
    /// Reads a description: a JSON type, or values to choose from, separated by `|`; in brackets if it is a list of them, with
    /// `!` at the end if it is required.
    pub(super) fn read(name: &str, described: &str) -> Self {
        let (kind, required) =
            described.strip_suffix('!').map_or((described, false), |described| (described, true));
        let list = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']'));
        let kind = match list {
            Some(element) => Kind::List(Box::new(Kind::read(element))),
            None => Kind::read(kind),
        };
        Self { name: name.to_owned(), required, kind }
    }

    /// A parameter of ThingsBoard that this server does not have.
    pub(super) fn absent(name: &str, accepted: &[String]) -> Self {
        Self { name: name.to_owned(), required: false, kind: Kind::Absent(accepted.to_vec()) }
    }

    /// The parameter in an OpenAPI document.
    pub(super) fn json(&self) -> JsonValue {
        let Self { name, required, kind } = self;
        let mut json = json!({ "name": name, "in": "query", "required": required, "schema": kind.schema() });
        match kind {
            Kind::List(_) => json["explode"] = false.into(),
            Kind::Absent(_) => {
                json["description"] = "ThingsBoard's; this server refuses other values".into();
            }
            Kind::Type(_) | Kind::Choice(_) => {}
        }
        json
    }

    /// Refuses a wrong value. An empty one counts as absent.
    fn check(&self, value: &str) -> Result<(), ApiError> {
        if value.is_empty() {
            return Ok(());
        }
        match &self.kind {
            Kind::List(element) => split_keys(value).try_for_each(|value| element.check(&self.name, value)),
            kind => kind.check(&self.name, value),
        }
    }
}

impl Kind {
    fn read(described: &str) -> Self {
        match described.contains('|') {
            true => Self::Choice(described.split('|').map(str::to_owned).collect()),
            false => Self::Type(described.to_owned()),
        }
    }

    fn schema(&self) -> JsonValue {
        match self {
            Self::Type(name) => json!({ "type": name }),
            Self::Choice(values) => json!({ "type": "string", "enum": values }),
            Self::List(element) => json!({ "type": "array", "items": element.schema() }),
            Self::Absent(accepted) if accepted.is_empty() => json!({ "type": "string", "maxLength": 0 }),
            Self::Absent(accepted) => json!({ "type": "string", "enum": accepted }),
        }
    }

    fn check(&self, name: &str, value: &str) -> Result<(), ApiError> {
        let wrong = |what: &str| Err(not_described(format!("{name} is {:?}; {what}", shown(value))));
        match self {
            Self::Type(kind) if kind == "integer" && value.parse::<i128>().is_err() => {
                wrong("it must be a whole number in its range")
            }
            Self::Type(kind)
                if kind == "boolean"
                    && !["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)) =>
            {
                wrong("it must be true or false")
            }
            Self::Choice(values) if !values.iter().any(|one| one == value) => {
                wrong(&format!("it must be {}", choices(values)))
            }
            Self::Absent(accepted) if !accepted.iter().any(|one| one.eq_ignore_ascii_case(value)) => {
                let or = match accepted.is_empty() {
                    true => String::new(),
                    false => format!(", or send {}", choices(accepted)),
                };
                let value = shown(value);
                Err(not_described(format!(
                    "{name} is {value:?}, which this server does not have; leave it out{or}"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Refuses a query string with a name or a value that is not described, or with a name that is given twice and is not a list.
pub(super) fn check(described: &[Parameter], route: &str, query: &str) -> Result<(), ApiError> {
    if query.is_empty() {
        return Ok(());
    }
    let mut seen = HashSet::new();
    for (name, value) in Params::parse(query).pairs() {
        let Some(parameter) = described.iter().find(|parameter| parameter.name == name) else {
            let names: Vec<&str> = described.iter().map(|parameter| parameter.name.as_str()).collect();
            let hint = hint(name, &names, "leave it out");
            let name = shown(name);
            return Err(not_described(format!("{route} has no parameter {name:?}; {hint}")));
        };
        if !matches!(parameter.kind, Kind::List(_)) && !seen.insert(&parameter.name) {
            return Err(not_described(format!("{name} is given twice; give it once")));
        }
        parameter.check(value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described() -> Vec<Parameter> {
        let read = [
            ("pageSize", "integer!"),
            ("active", "boolean"),
            ("searchStatus", "ANY|ACTIVE|CLEARED"),
            ("severityList", "[CRITICAL|MAJOR]"),
            ("typeList", "[string]"),
        ];
        let mut described: Vec<_> = read.map(|(name, kind)| Parameter::read(name, kind)).into();
        described.push(Parameter::absent("entityGroupId", &[]));
        described.push(Parameter::absent("includeCustomers", &["false".to_owned()]));
        described
    }

    #[test]
    fn what_is_described_passes() {
        for query in [
            "",
            "pageSize=10&active=True&searchStatus=CLEARED",
            "severityList=MAJOR,CRITICAL&severityList=MAJOR&typeList=a%2Cb&typeList=NOPE",
            "searchStatus=&entityGroupId=&includeCustomers=false",
        ] {
            check(&described(), "GET /api/x", query).unwrap();
        }
    }

    #[test]
    fn everything_else_is_refused_with_a_remedy() {
        for (query, wanted) in [
            ("pagesize=1", "GET /api/x has no parameter \"pagesize\"; did you mean \"pageSize\"?"),
            ("nonsense", "GET /api/x has no parameter \"nonsense\"; leave it out"),
            ("pageSize=1&pageSize=2", "pageSize is given twice; give it once"),
            ("pageSize=ten", "pageSize is \"ten\"; it must be a whole number in its range"),
            ("active=1", "active is \"1\"; it must be true or false"),
            ("searchStatus=OPEN", "searchStatus is \"OPEN\"; it must be ANY, ACTIVE or CLEARED"),
            ("severityList=MAJOR,HIGH", "severityList is \"HIGH\"; it must be CRITICAL or MAJOR"),
            ("entityGroupId=7", "entityGroupId is \"7\", which this server does not have; leave it out"),
            (
                "includeCustomers=true",
                "includeCustomers is \"true\", which this server does not have; leave it out, or send false",
            ),
        ] {
            let refused = check(&described(), "GET /api/x", query).unwrap_err();
            assert_eq!((refused.status.as_u16(), refused.message.as_str()), (400, wanted));
        }
    }
}
