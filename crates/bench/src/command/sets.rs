//! Options as overrides of a scenario, in the form of `--set`.

/// `key=value`, in the order of their application.
#[derive(Debug, Default)]
pub(super) struct Sets(pub(super) Vec<String>);

impl Sets {
    /// Adds a key with a number or a boolean, if given.
    pub(super) fn number(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        self.0.extend(value.map(|value| format!("{key}={value}")));
    }

    /// Adds a key with text, if given. The text is quoted, so that a password of digits stays text.
    pub(super) fn text(&mut self, key: &str, value: Option<&str>) {
        self.number(key, value.map(|text| toml::Value::String(text.to_owned())));
    }
}
