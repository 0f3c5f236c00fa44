//! Keys with texts: `<param name="…">`, `<predicate key="…">`, or a table.

use crate::virtual_sensors::fault::{Fault, TextPosition};
use crate::virtual_sensors::limits::{NAME_BYTES_MAX, PAIRS_MAX};

use super::form::Pair;
use super::located::Located;
use super::node::{Form, Node};

/// The pairs that XML has as elements `item` with the attribute `key`, and TOML as the keys of the table.
pub(super) fn read(node: &Node, item: &'static str, key: &'static str) -> Result<Vec<Pair>, Fault> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut add = |name: Located<&str>, value: Located<&str>| {
        let lower = name.value.trim().to_lowercase();
        if lower.is_empty() || lower.len() > NAME_BYTES_MAX {
            let reason =
                format!("a {key} has 1 to {NAME_BYTES_MAX} bytes (NAME_BYTES_MAX), not {}", lower.len());
            return Err(Fault::invalid(name.place, reason));
        }
        if pairs.len() == PAIRS_MAX {
            let reason = format!("{} has more than {PAIRS_MAX} values (PAIRS_MAX)", node.label());
            return Err(Fault::limit(name.place, reason));
        }
        if pairs.iter().any(|pair| pair.key.value == lower) {
            return Err(Fault::invalid(name.place, format!("{} has {lower:?} twice", node.label())));
        }
        let blanks = value.value.len() - value.value.trim_start().len();
        let place = value.value[..blanks].chars().fold(value.place, TextPosition::after);
        let value = Located::new(value.value.trim().to_owned(), place);
        pairs.push(Pair { key: Located::new(lower, name.place), value });
        Ok(())
    };
    match node.form {
        Form::Xml => {
            for child in node.children(item) {
                let name =
                    child.attribute(key).ok_or_else(|| child.missing(&format!("attribute {key:?}")))?;
                child.finish()?;
                add(name, Located::new(&child.text, child.text_place))?;
            }
        }
        Form::Toml => {
            for value in &node.values {
                node.attribute(&value.name);
                add(Located::new(&value.name, value.place), Located::new(&value.text, value.place))?;
            }
        }
    }
    node.finish()?;
    Ok(pairs)
}
