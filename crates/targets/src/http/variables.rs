//! Variables of a client: places `__NAME__` in requests and expected answers.

use crate::limits::{HTTP_VARIABLE_BYTES_MAX, HTTP_VARIABLES_MAX};

/// The variables that every client has: its number, and user and password of `target.url`.
pub(crate) const OWN: [&str; 3] = ["client", "user", "password"];
/// Names of places that are not variables.
const OTHER_PLACES: [&str; 2] = ["key", "data"];

/// The values that replace the places of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill<'a> {
    /// The key of the request.
    pub(crate) key: u64,
    /// The values of the variables by index. An empty one has no value.
    pub(crate) variables: &'a [String],
}

impl<'a> Fill<'a> {
    /// The value of a variable.
    pub(crate) fn variable(&self, index: usize) -> &'a str {
        self.variables.get(index).map_or("", String::as_str)
    }
}

/// The names of all variables of a scenario: those of every client, then those that operations extract.
pub(crate) fn names<'a>(extracted: impl Iterator<Item = &'a String>) -> Result<Vec<String>, String> {
    let mut all: Vec<String> = OWN.map(str::to_owned).into();
    for name in extracted {
        let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if !letters || name.is_empty() {
            return Err(format!("`extract`: `{name}` is not a name; use small letters and digits"));
        }
        if OWN.contains(&name.as_str()) || OTHER_PLACES.contains(&name.as_str()) {
            return Err(format!("`extract`: `__{name}__` has a meaning of its own; use another name"));
        }
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    if all.len() - OWN.len() > HTTP_VARIABLES_MAX {
        return Err(format!("`extract`: a scenario has at most {HTTP_VARIABLES_MAX} variables"));
    }
    Ok(all)
}

/// Checks that a value fits into a path, a header and a JSON text without changing their structure.
pub(crate) fn check_value(value: &str) -> Result<(), String> {
    if value.len() > HTTP_VARIABLE_BYTES_MAX {
        return Err(format!("longer than {HTTP_VARIABLE_BYTES_MAX} bytes"));
    }
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if value.is_empty() || !value.bytes().all(fits) {
        return Err("empty, or has blanks, quotes, backslashes or bytes that are not ASCII".to_owned());
    }
    Ok(())
}
