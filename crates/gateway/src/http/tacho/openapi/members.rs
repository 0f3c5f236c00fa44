//! The check of the members of a JSON body against its schema.
//!
//! It looks at names, and at values that a schema lists. What else is wrong with a value, the reader of the body finds. A schema
//! without `"additionalProperties": false` is open. A member that is `readOnly` is one of answers: it may come back, with any value.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as JsonValue};

use super::words::{choices, hint, not_described, shown};
use crate::error::ApiError;
use crate::http::tools::body_check::BodyRules;

/// The schemas by name.
pub(super) type Schemas = Map<String, JsonValue>;

/// The schema of the body of an operation.
#[derive(Debug)]
pub(super) struct Members {
    /// The method and the path of the operation.
    pub(super) route: String,
    pub(super) schema: JsonValue,
    pub(super) schemas: &'static Schemas,
}

impl BodyRules for Members {
    fn check(&self, body: &[u8]) -> Result<(), ApiError> {
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let fault = RefCell::new(None);
        let checked = Checked { schema: &self.schema, schemas: self.schemas, fault: &fault };
        // A text that is not JSON is refused by its reader, who knows what it should be.
        let _ = checked.deserialize(&mut serde_json::Deserializer::from_slice(body));
        match fault.into_inner() {
            None => Ok(()),
            Some(fault) => Err(not_described(fault.message(&self.route))),
        }
    }
}

/// The first fault of a body.
#[derive(Debug)]
struct Fault {
    /// The names and indices of the place, the innermost first.
    place: Vec<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    /// A member that the schema does not have, with a remedy.
    Unknown { name: String, hint: String },
    /// A value that is not among those of the schema.
    Value { value: JsonValue, accepted: Vec<JsonValue> },
}

impl Fault {
    fn message(self, route: &str) -> String {
        let mut place = String::new();
        for step in self.place.iter().rev() {
            let dot = if place.is_empty() || step.starts_with('[') { "" } else { "." };
            place.push_str(dot);
            place.push_str(step);
        }
        match self.what {
            What::Unknown { name, hint } if place.is_empty() => {
                format!("the body of {route} has no member {name:?}; {hint}")
            }
            What::Unknown { name, hint } => format!("{place} has no member {name:?}; {hint}"),
            What::Value { value, accepted } => {
                let (value, is_absent) = (value.to_string(), accepted.contains(&JsonValue::Null));
                let value = shown(&value);
                let accepted: Vec<String> = accepted.iter().map(JsonValue::to_string).collect();
                match is_absent {
                    true => format!(
                        "{place} is {value}, which this server does not have; use {}",
                        accepted.join(" or ")
                    ),
                    false => format!("{place} is {value}; it must be {}", choices(&accepted)),
                }
            }
        }
    }
}

/// A value that is read with a schema in mind.
#[derive(Clone, Copy)]
struct Checked<'a> {
    schema: &'a JsonValue,
    schemas: &'a Schemas,
    fault: &'a RefCell<Option<Fault>>,
}

impl<'a> Checked<'a> {
    fn of(self, schema: &'a JsonValue) -> Self {
        Self { schema, ..self }
    }

    /// The schema that a reference leads to.
    fn resolved(self) -> Self {
        let named = self.schema["$ref"].as_str().and_then(|target| target.rsplit('/').next());
        match named.and_then(|name| self.schemas.get(name)) {
            Some(schema) => self.of(schema).resolved(),
            None => self,
        }
    }

    fn refuse<E: serde::de::Error>(self, what: What) -> E {
        *self.fault.borrow_mut() = Some(Fault { place: Vec::new(), what });
        E::custom("refused")
    }

    /// Adds a step to the place of a fault further in.
    fn within<T, E>(self, result: Result<T, E>, step: impl FnOnce() -> String) -> Result<T, E> {
        if result.is_err()
            && let Some(fault) = self.fault.borrow_mut().as_mut()
        {
            fault.place.push(step());
        }
        result
    }

    /// The schema of an object whose type is told by one of its members; the object is open if its type is unknown.
    fn variant(self, value: &JsonValue) -> Option<Self> {
        let member = self.schema["discriminator"]["propertyName"].as_str()?;
        let variants = self.schema["oneOf"].as_array()?;
        let found = variants.iter().find(|one| one["properties"][member]["const"] == value[member])?;
        Some(self.of(found))
    }
}

impl<'de> DeserializeSeed<'de> for Checked<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.schema["readOnly"] == true {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        let checked = self.resolved();
        let schema = checked.schema;
        if let Some(accepted) = schema["enum"].as_array() {
            let value = <JsonValue as serde::Deserialize>::deserialize(deserializer)?;
            if value.is_null() || accepted.contains(&value) {
                return Ok(());
            }
            return Err(checked.refuse(What::Value { value, accepted: accepted.clone() }));
        }
        if schema.get("discriminator").is_some() {
            let value = <JsonValue as serde::Deserialize>::deserialize(deserializer)?;
            return match checked.variant(&value) {
                Some(variant) => variant.deserialize(&value).map_err(D::Error::custom),
                None => Ok(()),
            };
        }
        if ["properties", "additionalProperties", "items"].iter().any(|one| schema.get(one).is_some()) {
            return deserializer.deserialize_any(checked);
        }
        deserializer.deserialize_ignored_any(IgnoredAny).map(drop)
    }
}

impl<'de> Visitor<'de> for Checked<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let others = self.schema.get("additionalProperties");
        while let Some(name) = members.next_key::<String>()? {
            let schema = match (self.schema["properties"].get(&name), others) {
                (Some(schema), _) => schema,
                (None, Some(JsonValue::Bool(false))) => {
                    let known = self.schema["properties"].as_object();
                    let known: Vec<&str> =
                        known.iter().flat_map(|known| known.keys()).map(String::as_str).collect();
                    let hint = hint(&name, &known, "GET /api/openapi.json lists its members");
                    return Err(self.refuse(What::Unknown { name: shown(&name).into_owned(), hint }));
                }
                (None, Some(schema)) => schema,
                (None, None) => &JsonValue::Null,
            };
            let checked = members.next_value_seed(self.of(schema));
            self.within(checked, || shown(&name).into_owned())?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let schema = &self.schema["items"];
        let mut index = 0;
        loop {
            let checked = elements.next_element_seed(self.of(schema));
            if self.within(checked, || format!("[{index}]"))?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
