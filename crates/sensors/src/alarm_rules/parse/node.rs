//! A place in the JSON, with its path for errors.

use serde_json::Value as Json;

use crate::alarm_rules::error::RuleError;
use crate::alarm_rules::limits::RULE_TEXT_BYTES_MAX;

/// A value of the JSON and its path. A member that is not there is `null`.
#[derive(Debug)]
pub(super) struct Node<'a> {
    path: String,
    json: &'a Json,
}

impl<'a> Node<'a> {
    pub(super) fn root(path: &str, json: &'a Json) -> Self {
        Self { path: path.into(), json }
    }

    pub(super) fn member(&self, name: &str) -> Self {
        let json = self.json.get(name).unwrap_or(&Json::Null);
        Self { path: format!("{}.{name}", self.path), json }
    }

    /// Whether it is not there, or `null`.
    pub(super) fn is_absent(&self) -> bool {
        self.json.is_null()
    }

    pub(super) fn json(&self) -> &'a Json {
        self.json
    }

    pub(super) fn fault(&self, reason: String) -> RuleError {
        RuleError { path: self.path.clone(), reason }
    }

    /// The items of a list with a bound.
    pub(super) fn list(&self, limit: usize, limit_name: &str) -> Result<Vec<Self>, RuleError> {
        let items = self.json.as_array().ok_or_else(|| self.wrong("a list"))?;
        if items.len() > limit {
            let reason = format!("has {} entries, the limit is {limit} ({limit_name})", items.len());
            return Err(self.fault(reason));
        }
        let items = items.iter().enumerate();
        Ok(items.map(|(at, json)| Self { path: format!("{}[{at}]", self.path), json }).collect())
    }

    /// The members of an object.
    pub(super) fn entries(&self) -> Result<Vec<(&'a str, Self)>, RuleError> {
        let members = self.json.as_object().ok_or_else(|| self.wrong("an object"))?;
        let node = |name: &String, json| Self { path: format!("{}.{name}", self.path), json };
        Ok(members.iter().map(|(name, json)| (name.as_str(), node(name, json))).collect())
    }

    pub(super) fn text(&self) -> Result<&'a str, RuleError> {
        let text = self.json.as_str().ok_or_else(|| self.wrong("a text"))?;
        if text.len() > RULE_TEXT_BYTES_MAX {
            let (bytes, limit) = (text.len(), RULE_TEXT_BYTES_MAX);
            return Err(self.fault(format!("has {bytes} bytes, the limit is {limit} (RULE_TEXT_BYTES_MAX)")));
        }
        Ok(text)
    }

    pub(super) fn optional_text(&self) -> Result<Option<&'a str>, RuleError> {
        if self.is_absent() { Ok(None) } else { self.text().map(Some) }
    }

    pub(super) fn number(&self) -> Result<f64, RuleError> {
        let number = self.json.as_f64().filter(|number| number.is_finite());
        number.ok_or_else(|| self.wrong("a number"))
    }

    pub(super) fn whole(&self) -> Result<i64, RuleError> {
        self.json.as_i64().ok_or_else(|| self.wrong("a whole number"))
    }

    /// `true` or `false`; absent is false.
    pub(super) fn flag(&self) -> Result<bool, RuleError> {
        if self.is_absent() { Ok(false) } else { self.bool() }
    }

    pub(super) fn bool(&self) -> Result<bool, RuleError> {
        self.json.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// One of some names.
    pub(super) fn one_of<T: Copy>(&self, names: &[(&str, T)]) -> Result<T, RuleError> {
        let text = self.text()?;
        let found = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            self.fault(format!("is {text:?}; it must be one of {}", names.join(", ")))
        })
    }

    fn wrong(&self, expected: &str) -> RuleError {
        let is = match self.json {
            Json::Null => "is missing",
            Json::Bool(_) => "is a boolean",
            Json::Number(_) => "is a number",
            Json::String(_) => "is a text",
            Json::Array(_) => "is a list",
            Json::Object(_) => "is an object",
        };
        self.fault(format!("{is}; it must be {expected}"))
    }
}
