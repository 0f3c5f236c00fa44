//! `<streams>`: streams, their sources, and the addresses of these.

use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::limits::{
    ADDRESSES_PER_SOURCE_MAX, SOURCES_PER_STREAM_MAX, SQL_BYTES_MAX, STREAMS_MAX,
};

use super::form::{Address, Source, Stream};
use super::located::Located;
use super::node::{Form, Node, integer};
use super::{fields, pairs};

/// The query of a source that gives none.
const DEFAULT_QUERY: &str = "select * from wrapper";

/// The streams of a sensor. TOML has them as `[[stream]]`, without the element around them.
pub(super) fn streams(node: &Node) -> Result<Vec<Stream>, Fault> {
    let around = match node.form {
        Form::Xml => node.child("streams")?.ok_or_else(|| node.missing("<streams>"))?,
        Form::Toml => node,
    };
    let mut streams: Vec<Stream> = Vec::new();
    for child in around.children("stream") {
        let stream = stream(child)?;
        bound(child, streams.len(), STREAMS_MAX, "STREAMS_MAX")?;
        if streams.iter().any(|other| other.name.value == stream.name.value) {
            let reason = format!("{:?} is the name of another stream of the sensor", stream.name.value);
            return Err(Fault::invalid(stream.name.place, reason));
        }
        streams.push(stream);
    }
    if node.form == Form::Xml {
        around.finish()?;
    }
    Ok(streams)
}

fn bound(node: &Node, count: usize, most: usize, limit: &str) -> Result<(), Fault> {
    if count < most {
        return Ok(());
    }
    Err(Fault::limit(node.place, format!("this {} is one more than the {most} of {limit}", node.label())))
}

fn stream(node: &Node) -> Result<Stream, Fault> {
    let name = node.name(node.attribute("name"), "name of a stream")?;
    let number = |name| match node.attribute(name) {
        Some(said) => integer(said, name, 0, i64::MAX).map(Some),
        None => Ok(None),
    };
    let (rate, count) = (number("rate")?, number("count")?);
    let mut sources: Vec<Source> = Vec::new();
    for child in node.children("source") {
        let source = source(child)?;
        bound(child, sources.len(), SOURCES_PER_STREAM_MAX, "SOURCES_PER_STREAM_MAX")?;
        if sources.iter().any(|other| other.alias.value == source.alias.value) {
            let reason = format!("{:?} is the alias of another source of the stream", source.alias.value);
            return Err(Fault::invalid(source.alias.place, reason));
        }
        sources.push(source);
    }
    if sources.is_empty() {
        return Err(node.missing("source"));
    }
    let query = query(node)?.ok_or_else(|| node.missing("query"))?;
    node.finish()?;
    Ok(Stream { name, rate, count, query, sources })
}

fn source(node: &Node) -> Result<Source, Fault> {
    let alias = node.name(node.attribute("alias"), "alias of a source")?;
    let text = |name| node.attribute(name).map(|said| Located::new(said.value.to_owned(), said.place));
    let (storage_size, slide, sampling_rate) = (text("storage-size"), text("slide"), text("sampling-rate"));
    // GSN 1.1 writes "disconnect", GSN 2.0 reads "disconnected".
    let names = ["disconnect-buffer-size", "disconnected-buffer-size"];
    let said: Vec<_> = names.iter().filter_map(|name| node.attribute(name)).collect();
    if let [_, second] = &said[..] {
        let reason = format!("{} and {} are the same word; use one of them", names[0], names[1]);
        return Err(Fault::invalid(second.place, reason));
    }
    let buffer = said.into_iter().next().map(|said| integer(said, names[0], 0, i64::MAX)).transpose()?;
    let mut addresses = Vec::new();
    for child in node.children("address") {
        bound(child, addresses.len(), ADDRESSES_PER_SOURCE_MAX, "ADDRESSES_PER_SOURCE_MAX")?;
        addresses.push(address(child)?);
    }
    if addresses.is_empty() {
        return Err(node.missing("address"));
    }
    let query = query(node)?.unwrap_or_else(|| Located::new(DEFAULT_QUERY.to_owned(), node.place));
    node.finish()?;
    let disconnect_buffer_size = buffer;
    Ok(Source { alias, storage_size, slide, sampling_rate, disconnect_buffer_size, addresses, query })
}

fn address(node: &Node) -> Result<Address, Fault> {
    let wrapper = node.name(node.attribute("wrapper"), "wrapper")?;
    let key = node.attribute("partial-order-key");
    let partial_order_key = key.map(|said| Located::new(said.value.to_owned(), said.place));
    let output = match node.child("output-structure")? {
        Some(structure) => fields::structure(structure)?,
        None => Vec::new(),
    };
    let predicates = match node.form {
        Form::Xml => pairs::read(node, "predicate", "key")?,
        Form::Toml => match node.child("predicate")? {
            Some(table) => pairs::read(table, "predicate", "key")?,
            None => Vec::new(),
        },
    };
    node.finish()?;
    Ok(Address { wrapper, partial_order_key, predicates, output })
}

/// The text of a query, with the place of its first character. An empty one counts as absent.
fn query(node: &Node) -> Result<Option<Located<String>>, Fault> {
    let Some(said) = node.word("query")? else { return Ok(None) };
    if said.value.len() > SQL_BYTES_MAX {
        let reason =
            format!("the query has {} bytes; at most {SQL_BYTES_MAX} (SQL_BYTES_MAX)", said.value.len());
        return Err(Fault::limit(said.place, reason));
    }
    let blank = said.value.len() - said.value.trim_start().len();
    let place = said.value[..blank].chars().fold(said.place, |place, c| place.after(c));
    let text = said.value.trim();
    Ok((!text.is_empty()).then(|| Located::new(text.to_owned(), place)))
}
