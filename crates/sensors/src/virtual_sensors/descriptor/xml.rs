//! XML as a tree. A document type is refused, so no entity of its own can grow or read a file.

use std::ops::Range;

use roxmltree::{Document, Error, ParsingOptions};

use crate::virtual_sensors::fault::{Fault, LineStarts, TextPosition};
use crate::virtual_sensors::limits::{DESCRIPTOR_DEPTH_MAX, DESCRIPTOR_NODES_MAX};

use super::node::{Form, Node, too_many_nodes};

/// Reads a document whose root element has a name.
pub(crate) fn parse(text: &str, root: &str) -> Result<Node, Fault> {
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: DESCRIPTOR_NODES_MAX as u32,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|error| syntax(text, &error))?;
    let places = LineStarts::new(text);
    let found = document.root_element();
    if found.tag_name().name() != root {
        let reason = format!("the root element is <{}>; <{root}> is expected", found.tag_name().name());
        return Err(Fault::invalid(places.of(found.range().start), reason));
    }
    Reader { text, places, count: 0 }.element(found, 0)
}

fn syntax(text: &str, error: &Error) -> Fault {
    let at = error.pos();
    let place = TextPosition { line: at.row.max(1), column: at.col.max(1) };
    match error {
        Error::DtdDetected => {
            let at = text.find("<!DOCTYPE").unwrap_or_default();
            let reason = "a document type (<!DOCTYPE>) is not read, so it can define no entities; remove it";
            Fault::unsupported(LineStarts::new(text).of(at), reason)
        }
        Error::NodesLimitReached => too_many_nodes(place),
        error => {
            // The place is before the reason already.
            let text = error.to_string();
            let reason = text.rfind(" at ").map_or(text.as_str(), |end| &text[..end]);
            Fault::syntax(place, format!("this is not XML: {reason}"))
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    places: LineStarts<'a>,
    count: usize,
}

impl Reader<'_> {
    fn element(&mut self, element: roxmltree::Node<'_, '_>, depth: usize) -> Result<Node, Fault> {
        let place = self.places.of(element.range().start);
        if depth > DESCRIPTOR_DEPTH_MAX {
            let reason = format!(
                "elements are more than {DESCRIPTOR_DEPTH_MAX} deep in each other (DESCRIPTOR_DEPTH_MAX)"
            );
            return Err(Fault::limit(place, reason));
        }
        let mut node = Node::new(Form::Xml, element.tag_name().name(), place);
        for attribute in element.attributes() {
            let start = self.places.of(attribute.range_value().start);
            node.push_value(attribute.name(), attribute.value().to_owned(), start);
        }
        self.count += 1 + node.values.len();
        if self.count > DESCRIPTOR_NODES_MAX {
            return Err(too_many_nodes(place));
        }
        for child in element.children() {
            if child.is_element() {
                node.children.push(self.element(child, depth + 1)?);
            } else if let Some(piece) = child.text().filter(|_| child.is_text()) {
                if node.text.is_empty() {
                    node.text_place = self.text_place(child.range());
                }
                node.text.push_str(piece);
            }
        }
        if !node.children.is_empty() && !node.text.trim().is_empty() {
            let reason =
                format!("<{}> has text beside its elements: {:?}; remove it", node.name, node.text.trim());
            return Err(Fault::invalid(node.text_place, reason));
        }
        Ok(node)
    }

    fn text_place(&self, range: Range<usize>) -> TextPosition {
        let cdata = "<![CDATA[";
        let skipped = if self.text[range.clone()].starts_with(cdata) { cdata.len() } else { 0 };
        self.places.of(range.start + skipped)
    }
}
