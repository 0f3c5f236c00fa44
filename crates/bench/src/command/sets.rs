//! Options that stand for keys of a scenario, written as `--set` would have them.

/// `key=value`, in the order in which they are applied.
#[derive(Debug, Default)]
pub(super) struct Sets(pub(super) Vec<String>);

impl Sets {
    /// A key whose value is a number or a truth, if it was given.
    pub(super) fn number(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        self.0.extend(value.map(|value| format!("{key}={value}")));
    }

    /// A key whose value is text, if it was given. Quoted, so that a password of digits stays text.
    pub(super) fn text(&mut self, key: &str, value: Option<&str>) {
        self.number(key, value.map(|text| toml::Value::String(text.to_owned())));
    }
}
