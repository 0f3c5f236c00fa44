//! The tree that XML and TOML have in common. It keeps the form, because XML states whether a word is an attribute or an element.

use std::cell::Cell;

use crate::virtual_sensors::fault::{Fault, TextPosition};
use crate::virtual_sensors::limits::{DESCRIPTOR_NODES_MAX, NAME_BYTES_MAX};

use super::located::Located;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Xml,
    Toml,
}

/// A value: an attribute, or a key of a table.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) place: TextPosition,
    used: Cell<bool>,
}

/// An element, or a table.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) form: Form,
    pub(crate) name: String,
    pub(crate) place: TextPosition,
    pub(crate) values: Vec<Value>,
    pub(crate) children: Vec<Node>,
    /// The text of an element, unchanged.
    pub(crate) text: String,
    /// Where the text begins.
    pub(crate) text_place: TextPosition,
    used: Cell<bool>,
}

impl Node {
    pub(crate) fn new(form: Form, name: impl Into<String>, place: TextPosition) -> Self {
        Self {
            form,
            name: name.into(),
            place,
            values: Vec::new(),
            children: Vec::new(),
            text: String::new(),
            text_place: place,
            used: Cell::new(false),
        }
    }

    pub(crate) fn push_value(&mut self, name: impl Into<String>, text: String, place: TextPosition) {
        self.values.push(Value { name: name.into(), text, place, used: Cell::new(false) });
    }

    /// A value that XML gives as an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<Located<&str>> {
        let value = self.values.iter().find(|value| value.name == name)?;
        value.used.set(true);
        Some(Located::new(value.text.as_str(), value.place))
    }

    /// A value that XML gives as an element with text.
    pub(crate) fn word(&self, name: &'static str) -> Result<Option<Located<&str>>, Fault> {
        if self.form == Form::Toml {
            return Ok(self.attribute(name));
        }
        let Some(child) = self.child(name)? else { return Ok(None) };
        child.finish()?;
        Ok(Some(Located::new(child.text.as_str(), child.text_place)))
    }

    /// The only child of a name.
    pub(crate) fn child(&self, name: &'static str) -> Result<Option<&Self>, Fault> {
        let mut children = self.children(name);
        let first = children.next();
        match children.next() {
            None => Ok(first),
            Some(second) => {
                let reason = format!("{} has a second {}; it has at most one", self.label(), second.label());
                Err(Fault::invalid(second.place, reason))
            }
        }
    }

    /// The children of a name.
    pub(crate) fn children(&self, name: &'static str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name).inspect(|child| child.used.set(true))
    }

    /// Refuses what nobody has asked for.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        let value = self.values.iter().find(|value| !value.used.get());
        let unknown = match (value, self.children.iter().find(|child| !child.used.get())) {
            (Some(value), _) => Some((value.place, value.name.as_str())),
            (None, Some(child)) => Some((child.place, child.name.as_str())),
            (None, None) => None,
        };
        let Some((place, name)) = unknown else { return Ok(()) };
        Err(Fault::invalid(
            place,
            format!("{} has no {name:?}; docs/sensors.md lists its words", self.label()),
        ))
    }

    /// The element as its author wrote it.
    pub(crate) fn label(&self) -> String {
        match self.form {
            Form::Xml => format!("<{}>", self.name),
            Form::Toml => format!("[{}]", self.name),
        }
    }

    pub(crate) fn missing(&self, what: &str) -> Fault {
        Fault::invalid(self.place, format!("{} has no {what}; it needs one", self.label()))
    }

    /// A name: in lower case, without blanks, neither empty nor long.
    pub(crate) fn name(&self, said: Option<Located<&str>>, what: &str) -> Result<Located<String>, Fault> {
        let said = said.ok_or_else(|| self.missing(what))?;
        let name: String =
            said.value.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let bytes = name.len();
            let reason = format!("{what} has {bytes} bytes; it has 1 to {NAME_BYTES_MAX} (NAME_BYTES_MAX)");
            return Err(Fault::invalid(said.place, reason));
        }
        if let Some(bad) = name.chars().find(|c| c.is_control() || matches!(c, '"' | '`' | '\'' | '/' | '\\'))
        {
            return Err(Fault::invalid(
                said.place,
                format!("{what} {name:?} has {bad:?}, which no name may have"),
            ));
        }
        Ok(Located::new(name, said.place))
    }
}

pub(crate) fn too_many_nodes(place: TextPosition) -> Fault {
    let reason = format!(
        "the file has more than {DESCRIPTOR_NODES_MAX} elements and attributes (DESCRIPTOR_NODES_MAX)"
    );
    Fault::limit(place, reason)
}

/// A whole number.
pub(crate) fn integer(said: Located<&str>, what: &str, least: i64, most: i64) -> Result<Located<i64>, Fault> {
    match said.value.trim().parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(Located::new(number, said.place)),
        _ => {
            let reason = format!("{what} is {:?}; it is a whole number from {least} to {most}", said.value);
            Err(Fault::invalid(said.place, reason))
        }
    }
}

/// `true` or `false`, in any case.
pub(crate) fn flag(said: Located<&str>, what: &str) -> Result<Located<bool>, Fault> {
    let text = said.value.trim();
    if text.eq_ignore_ascii_case("true") {
        Ok(Located::new(true, said.place))
    } else if text.eq_ignore_ascii_case("false") {
        Ok(Located::new(false, said.place))
    } else {
        Err(Fault::invalid(said.place, format!("{what} is {text:?}; it is true or false")))
    }
}
