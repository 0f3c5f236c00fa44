//! Rules for names: keys, tables, tags.

use crate::limits;

/// The reason why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("the {what} is empty; give it at least one character")]
    Empty {
        /// The kind of name.
        what: &'static str,
    },
    /// The name is longer than the limit.
    #[error("the {what} has {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// The kind of name.
        what: &'static str,
        /// The length of the name.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The name contains a control character.
    #[error(
        "the {what} holds the control character U+{code:04X} at byte {offset}; names hold printable text"
    )]
    Control {
        /// The kind of name.
        what: &'static str,
        /// The character's code point.
        code: u32,
        /// The position of the character.
        offset: usize,
    },
    /// The series has too many tags.
    #[error("the series has {tags} tags, the limit is {limit}")]
    TooManyTags {
        /// The number of its tags.
        tags: usize,
        /// The limit.
        limit: usize,
    },
}

/// Checks a key: the name under which a device reports a value.
pub fn check_key(key: &str) -> Result<(), NameError> {
    check("key", key, limits::KEY_BYTES_MAX)
}

/// Checks a table name.
pub fn check_table(table: &str) -> Result<(), NameError> {
    check("table name", table, limits::TABLE_NAME_BYTES_MAX)
}

/// Checks the name of a namespace.
pub fn check_namespace(namespace: &str) -> Result<(), NameError> {
    check("namespace", namespace, limits::NAMESPACE_BYTES_MAX)
}

/// Checks a name that can be a tag value, such as a device name.
pub fn check_tag_value(value: &str) -> Result<(), NameError> {
    check("tag value", value, limits::TAG_VALUE_BYTES_MAX)
}

/// Checks a tag value of a series. Unlike a name it may have tabs and line breaks, as labels of Prometheus have them.
pub fn check_tag_text(value: &str) -> Result<(), NameError> {
    match check_tag_value(value) {
        Err(NameError::Control { what, .. }) => {
            let mut others = value.char_indices().filter(|(_, c)| c.is_control() && !"\t\n\r".contains(*c));
            match others.next() {
                Some((offset, c)) => Err(NameError::Control { what, code: c as u32, offset }),
                None => Ok(()),
            }
        }
        checked => checked,
    }
}

fn check(what: &'static str, name: &str, limit: usize) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty { what });
    }
    if name.len() > limit {
        return Err(NameError::TooLong { what, bytes: name.len(), limit });
    }
    // Control characters are the bytes below 0x20, 0x7f, and U+0080..U+009F; only the last need decoding.
    if name.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Ok(());
    }
    match name.char_indices().find(|(_, c)| c.is_control()) {
        Some((offset, c)) => Err(NameError::Control { what, code: c as u32, offset }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_names_of_any_script_pass() {
        for key in ["speed", "ENGINE_RPM ()", "température", "速度", "a.b-c/d:e"] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
    }

    #[test]
    fn tag_values_of_series_may_have_several_lines() {
        assert!(check_tag_value("a\nb").is_err());
        assert_eq!(check_tag_text("a\r\n\tb"), Ok(()));
        assert!(matches!(check_tag_text("a\n\u{1}"), Err(NameError::Control { code: 1, offset: 2, .. })));
        assert!(matches!(check_tag_text(""), Err(NameError::Empty { .. })));
    }

    #[test]
    fn empty_long_and_control_names_are_refused_with_the_position() {
        assert_eq!(check_key(""), Err(NameError::Empty { what: "key" }));
        let long = "k".repeat(256);
        assert_eq!(check_key(&long), Err(NameError::TooLong { what: "key", bytes: 256, limit: 255 }));
        assert_eq!(check_key("a\nb"), Err(NameError::Control { what: "key", code: 10, offset: 1 }));
        assert_eq!(check_key("é\u{85}"), Err(NameError::Control { what: "key", code: 0x85, offset: 2 }));
    }
}
