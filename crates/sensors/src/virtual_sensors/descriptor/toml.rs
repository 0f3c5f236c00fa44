//! TOML as a tree. A scalar is a value, a table a child, and an array of tables is one child for each.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::virtual_sensors::fault::{Fault, LineStarts, TextPosition};
use crate::virtual_sensors::limits::{DESCRIPTOR_DEPTH_MAX, DESCRIPTOR_NODES_MAX};

use super::node::{Form, Node, too_many_nodes};

/// Reads a document, whose root gets a name.
pub(crate) fn parse(text: &str, root: &str) -> Result<Node, Fault> {
    let places = LineStarts::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::syntax(places.of(at), format!("this is not TOML: {}", error.message()))
    })?;
    let mut reader = Reader { text, places, count: 0 };
    reader.table(root, TextPosition::START, table.get_ref(), 0)
}

struct Reader<'a> {
    text: &'a str,
    places: LineStarts<'a>,
    count: usize,
}

impl Reader<'_> {
    fn table(
        &mut self,
        name: &str,
        place: TextPosition,
        table: &DeTable<'_>,
        depth: usize,
    ) -> Result<Node, Fault> {
        if depth > DESCRIPTOR_DEPTH_MAX {
            let reason = format!(
                "tables are more than {DESCRIPTOR_DEPTH_MAX} deep in each other (DESCRIPTOR_DEPTH_MAX)"
            );
            return Err(Fault::limit(place, reason));
        }
        let mut node = Node::new(Form::Toml, name, place);
        // A map of the library has the order of the keys; the order in the file is the one that people see.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            self.member(&mut node, key, value, depth)?;
        }
        Ok(node)
    }

    fn member(
        &mut self,
        node: &mut Node,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        depth: usize,
    ) -> Result<(), Fault> {
        let name = key.get_ref().as_ref();
        let place = self.places.of(value.span().start);
        self.count += 1;
        if self.count > DESCRIPTOR_NODES_MAX {
            return Err(too_many_nodes(place));
        }
        match value.get_ref() {
            DeValue::String(text) => node.push_value(name, text.to_string(), self.text_place(value, place)),
            DeValue::Integer(number) => node.push_value(name, number.as_str().replace('_', ""), place),
            DeValue::Float(number) => node.push_value(name, number.as_str().replace('_', ""), place),
            DeValue::Boolean(flag) => node.push_value(name, flag.to_string(), place),
            DeValue::Datetime(time) => node.push_value(name, time.to_string(), place),
            DeValue::Table(table) => {
                let place = self.places.of(key.span().start);
                node.children.push(self.table(name, place, table, depth + 1)?);
            }
            DeValue::Array(items) => {
                for item in items {
                    let place = self.places.of(item.span().start);
                    let DeValue::Table(table) = item.get_ref() else {
                        let reason =
                            format!("{name:?} has an item that is not a table; its items are tables");
                        return Err(Fault::invalid(place, reason));
                    };
                    node.children.push(self.table(name, place, table, depth + 1)?);
                }
            }
        }
        Ok(())
    }

    /// Where the text of a string begins: after its quotes, and after the line break that TOML removes.
    fn text_place(&self, value: &Spanned<DeValue<'_>>, place: TextPosition) -> TextPosition {
        let raw = &self.text[value.span()];
        let quotes = if raw.starts_with("\"\"\"") || raw.starts_with("'''") { 3 } else { 1 };
        match raw.get(quotes..) {
            Some(rest) if quotes == 3 && (rest.starts_with('\n') || rest.starts_with("\r\n")) => {
                TextPosition { line: place.line + 1, column: 1 }
            }
            _ => TextPosition { column: place.column + quotes as u32, ..place },
        }
    }
}
