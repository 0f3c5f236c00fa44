//! Expectations on the JSON of an answer, and values that a client keeps from it.

use serde_json::Value;

use super::template::{Data, Text};
use super::variables::{Fill, check_value};

/// The value that an answer must have at a pointer.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonExpect {
    /// Any value.
    Present,
    Number(serde_json::Number),
    /// `true` or `false`.
    Boolean(bool),
    /// A text with places. A number with this text is equal.
    Text(String),
}

/// The keys of an operation that need the JSON of its answer. Pointers are those of RFC 6901.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonOptions {
    /// For each pointer, the expected value.
    pub expect: Vec<(String, JsonExpect)>,
    /// Names of variables and the pointers to their values.
    pub extract: Vec<(String, String)>,
}

impl JsonOptions {
    pub(crate) fn is_empty(&self) -> bool {
        self.expect.is_empty() && self.extract.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    Same(JsonExpect),
    Filled(Text),
}

/// The prepared form of [`JsonOptions`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JsonRules {
    expect: Vec<(String, Wanted)>,
    /// Indexes of variables and the pointers to their values.
    extract: Vec<(usize, String)>,
}

impl JsonRules {
    pub(super) fn new(options: &JsonOptions, data: Data, names: &[String]) -> Result<Self, String> {
        let mut rules = Self { expect: Vec::new(), extract: Vec::new() };
        for (pointer, wanted) in &options.expect {
            check_pointer(pointer).map_err(|error| format!("`expect_json`: {error}"))?;
            let wanted = match wanted {
                JsonExpect::Text(text) => Wanted::Filled(Text::parse(text, data, names)),
                other => Wanted::Same(other.clone()),
            };
            rules.expect.push((pointer.clone(), wanted));
        }
        for (name, pointer) in &options.extract {
            check_pointer(pointer).map_err(|error| format!("`extract`: {error}"))?;
            let index = names.iter().position(|known| known == name);
            rules
                .extract
                .push((index.ok_or_else(|| format!("`extract`: unknown name `{name}`"))?, pointer.clone()));
        }
        Ok(rules)
    }

    pub(super) fn extracts(&self) -> bool {
        !self.extract.is_empty()
    }

    /// The variables that the expectations use.
    pub(super) fn variables(&self) -> impl Iterator<Item = usize> {
        self.expect.iter().flat_map(|(_, wanted)| match wanted {
            Wanted::Filled(text) => text.variables(),
            Wanted::Same(_) => Vec::new(),
        })
    }

    /// Takes away the values that the next answer should have given.
    pub(super) fn clear(&self, variables: &mut [String]) {
        for (index, _) in &self.extract {
            if let Some(variable) = variables.get_mut(*index) {
                variable.clear();
            }
        }
    }

    /// Compares an answer, and keeps its values if it is as expected. The error names the first difference.
    pub(super) fn apply(&self, body: &[u8], key: u64, variables: &mut [String]) -> Result<(), String> {
        let json: Value = serde_json::from_slice(body).map_err(|_| "the answer is not JSON".to_owned())?;
        let at =
            |pointer: &str| json.pointer(pointer).ok_or_else(|| format!("JSON: no value at `{pointer}`"));
        for (pointer, wanted) in &self.expect {
            if !wanted.agrees(at(pointer)?, Fill { key, variables }) {
                return Err(format!("JSON: the value at `{pointer}` is not the expected one"));
            }
        }
        let mut values = Vec::with_capacity(self.extract.len());
        for (_, pointer) in &self.extract {
            let value = text_of(at(pointer)?);
            let value =
                value.ok_or_else(|| format!("JSON: the value at `{pointer}` is not text or number"))?;
            check_value(&value).map_err(|why| format!("JSON: the value at `{pointer}` is {why}"))?;
            values.push(value);
        }
        for ((index, _), value) in self.extract.iter().zip(values) {
            variables[*index] = value;
        }
        Ok(())
    }
}

impl Wanted {
    fn agrees(&self, value: &Value, fill: Fill<'_>) -> bool {
        match self {
            Self::Same(JsonExpect::Number(wanted)) => {
                matches!(value, Value::Number(value) if value == wanted || (value.is_f64() || wanted.is_f64()) && value.as_f64() == wanted.as_f64())
            }
            Self::Same(JsonExpect::Boolean(wanted)) => value.as_bool() == Some(*wanted),
            Self::Same(_) => true,
            Self::Filled(text) => {
                let mut wanted = Vec::new();
                text.append(&mut wanted, fill);
                text_of(value).is_some_and(|value| value.as_bytes() == wanted)
            }
        }
    }
}

/// The text of a string or a number.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn check_pointer(pointer: &str) -> Result<(), String> {
    let escapes = pointer.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
    match escapes && (pointer.is_empty() || pointer.starts_with('/')) {
        true => Ok(()),
        false => {
            Err(format!("`{pointer}` is not a JSON pointer (RFC 6901): it begins with `/`, `~` is `~0`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(expect: &[(&str, JsonExpect)], extract: &[(&str, &str)]) -> Result<JsonRules, String> {
        let options = JsonOptions {
            expect: expect.iter().map(|(pointer, wanted)| ((*pointer).to_owned(), wanted.clone())).collect(),
            extract: extract.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
        };
        JsonRules::new(&options, Data::default(), &["id".to_owned()])
    }

    #[test]
    fn values_are_compared_at_their_pointers() {
        let body = br#"{"a":{"b/c":[1,2.5,"x"]},"n":"12","t":true,"id":"7f"}"#;
        let text = |text: &str| JsonExpect::Text(text.to_owned());
        let mut variables = vec!["7f".to_owned()];
        for (pointer, wanted, agrees) in [
            ("/a/b~1c/0", JsonExpect::Number(1.into()), true),
            ("/a/b~1c/0", JsonExpect::Number(serde_json::Number::from_f64(1.0).unwrap()), true),
            ("/a/b~1c/0", JsonExpect::Number(2.into()), false),
            ("/a/b~1c/2", text("x"), true),
            ("/n", text("__key__"), true),
            ("/n", JsonExpect::Number(12.into()), false),
            ("/a/b~1c/1", text("2.5"), true),
            ("/id", text("__id__"), true),
            ("/n", text("__id__"), false),
            ("/t", JsonExpect::Boolean(true), true),
            ("/t", JsonExpect::Boolean(false), false),
            ("/a", JsonExpect::Present, true),
            ("/b", JsonExpect::Present, false),
        ] {
            let rules = rules(&[(pointer, wanted.clone())], &[]).unwrap();
            assert_eq!(rules.apply(body, 12, &mut variables).is_ok(), agrees, "{pointer} {wanted:?}");
        }
    }

    #[test]
    fn a_value_is_kept_only_from_an_answer_that_has_it() {
        let rules = rules(&[("/ok", JsonExpect::Present)], &[("id", "/id")]).unwrap();
        let mut variables = vec![String::new()];
        let long = format!(r#"{{"ok":1,"id":"{}"}}"#, "x".repeat(5_000));
        for (body, error) in [
            ("<html>", "not JSON"),
            (r#"{"ok":1,"id":"#, "not JSON"),
            (r#"{"id":"a"}"#, "no value at `/ok`"),
            (r#"{"ok":1}"#, "no value at `/id`"),
            (r#"{"ok":1,"id":[]}"#, "not text or number"),
            (r#"{"ok":1,"id":""}"#, "empty"),
            (r#"{"ok":1,"id":"a\r\nb: c"}"#, "blanks"),
            (&long, "longer than 4096 bytes"),
        ] {
            let wrong = rules.apply(body.as_bytes(), 0, &mut variables).unwrap_err();
            assert!(wrong.contains(error) && variables[0].is_empty(), "{body}: {wrong}");
        }
        rules.apply(br#"{"ok":1,"id":-7}"#, 0, &mut variables).unwrap();
        assert_eq!(variables[0], "-7");
        rules.clear(&mut variables);
        assert!(variables[0].is_empty());
    }

    #[test]
    fn what_is_not_a_pointer_is_refused() {
        for wrong in ["a", "/a~2", "/a~"] {
            assert!(rules(&[], &[("id", wrong)]).unwrap_err().contains("RFC 6901"), "{wrong}");
        }
    }
}
