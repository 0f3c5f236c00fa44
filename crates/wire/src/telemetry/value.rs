//! Values of keys.

use std::borrow::Cow;

use model::ValueRef;

use super::error::{PayloadError, over};

/// Calls `take` with the JSON value text; not for `null`, which means no value. `raw` must be JSON.
pub(crate) fn read_value<T>(
    raw: &str,
    json_depth_max: usize,
    take: impl FnOnce(ValueRef<'_>) -> Result<T, PayloadError>,
) -> Result<Option<T>, PayloadError> {
    let unescaped: Cow<'_, str>;
    let value = match raw.as_bytes().first() {
        Some(b'n') => return Ok(None),
        Some(b't') => ValueRef::Bool(true),
        Some(b'f') => ValueRef::Bool(false),
        Some(b'"') => {
            unescaped = unescape(raw)?;
            ValueRef::String(&unescaped)
        }
        Some(b'{' | b'[') => {
            over("the nesting of a JSON value", depth(raw), json_depth_max)?;
            ValueRef::Json(raw)
        }
        _ => number(raw),
    };
    take(value).map(Some)
}

fn number(raw: &str) -> ValueRef<'_> {
    let exact = if raw.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        raw.parse().ok().filter(|value: &f64| value.is_finite()).map(ValueRef::F64)
    } else {
        raw.parse().ok().map(ValueRef::I64)
    };
    exact.unwrap_or(ValueRef::Json(raw))
}

fn unescape(raw: &str) -> Result<Cow<'_, str>, PayloadError> {
    let inner = &raw[1..raw.len() - 1];
    if !inner.as_bytes().contains(&b'\\') {
        return Ok(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw).map(Cow::Owned).map_err(|error| PayloadError::Json(error.to_string()))
}

/// Deepest nesting of brackets outside of strings. `raw` must be JSON.
fn depth(raw: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in raw.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_in_strings_do_not_count_as_nesting() {
        assert_eq!(depth(r#"{"a":"[[[[","b":"\"[["}"#), 1);
        assert_eq!(depth("[[],[[]]]"), 3);
    }
}
