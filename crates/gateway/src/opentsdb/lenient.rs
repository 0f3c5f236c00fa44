//! Members of JSON bodies, read as leniently as OpenTSDB's own library reads them: null is absent, and a text may hold a number or a
//! truth value.

use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The value, or the default for null.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A truth value.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(false),
        Value::Bool(value) => Ok(value),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        Value::String(text) if text.is_empty() || text.eq_ignore_ascii_case("false") => Ok(false),
        other => Err(Error::custom(format!("{other} is neither true nor false"))),
    }
}

/// A number, perhaps as a text; `None` for null and an empty text.
pub(super) fn number<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::String(text) if text.is_empty() => return Ok(None),
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        other => return Err(Error::custom(format!("{other} is not a number"))),
    };
    // Clients of Go write whole numbers as floats.
    let whole = || {
        let float = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0)?;
        format!("{float:.0}").parse().ok()
    };
    let number = text.parse().ok().or_else(whole);
    number.map(Some).ok_or_else(|| Error::custom(format!("{text:?} is not a whole number in its range")))
}

/// A time or another text that may also be a number; `None` for null and an empty text.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Value::Number(number) => Ok(Some(number.to_string())),
        other => Err(Error::custom(format!("{other} is neither a text nor a number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Body {
        #[serde(deserialize_with = "or_default")]
        list: Vec<i64>,
        #[serde(deserialize_with = "flag")]
        flag: bool,
        #[serde(deserialize_with = "number")]
        number: Option<i64>,
        #[serde(deserialize_with = "text")]
        text: Option<String>,
    }

    fn read(json: &str) -> Option<Body> {
        serde_json::from_str(json).ok()
    }

    #[test]
    fn members_have_several_forms() {
        let nothing = Body::default();
        assert_eq!(read("{}").unwrap(), nothing);
        assert_eq!(read(r#"{"list": null, "flag": null, "number": null, "text": null}"#).unwrap(), nothing);
        assert_eq!(read(r#"{"flag": "", "number": "", "text": ""}"#).unwrap(), nothing);
        let full = Body { list: vec![1], flag: true, number: Some(5), text: Some("7".into()) };
        assert_eq!(read(r#"{"list": [1], "flag": "true", "number": "5", "text": 7}"#).unwrap(), full);
        assert_eq!(read(r#"{"number": 1e3}"#).unwrap().number, Some(1000));
        for wrong in [r#"{"flag": 2}"#, r#"{"number": 1.5}"#, r#"{"number": []}"#, r#"{"text": {}}"#] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
