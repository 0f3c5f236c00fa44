//! `ClockedBridge` reads the table that its parameter names: the output of another sensor.

use super::short_name;
use crate::virtual_sensors::descriptor::{Address, Descriptor, Located, Pair, Source, Stream};

/// A descriptor of `ClockedBridge` with a stream over the table of `table_name`; `None` if no stream needs to be added.
pub(in crate::virtual_sensors::plan) fn with_table(descriptor: &Descriptor) -> Option<Descriptor> {
    let processing = &descriptor.processing;
    if short_name(&processing.class_name) != Ok("ClockedBridge") {
        return None;
    }
    let table = processing.params.iter().find(|pair| pair.key.value == "table_name")?;
    let sources = descriptor.streams.iter().flat_map(|stream| &stream.sources);
    let mut addresses = sources.flat_map(|source| &source.addresses);
    if addresses.any(|address| reads(address, &table.value.value)) {
        return None;
    }
    let mut with_table = descriptor.clone();
    with_table.streams.push(stream(&table.value));
    Some(with_table)
}

fn reads(address: &Address, table: &str) -> bool {
    let is_name = |pair: &Pair| pair.key.value == "name" && pair.value.value.eq_ignore_ascii_case(table);
    address.wrapper.value == "local" && address.predicates.iter().any(is_name)
}

fn stream(table: &Located<String>) -> Stream {
    let said = |text: &str| Located::new(text.to_owned(), table.place);
    let name = Pair { key: said("name"), value: table.clone() };
    let address = Address {
        wrapper: said("local"),
        partial_order_key: None,
        predicates: vec![name],
        output: Vec::new(),
    };
    let source = Source {
        alias: said("table_rows"),
        storage_size: Some(said("1")),
        slide: None,
        sampling_rate: None,
        disconnect_buffer_size: None,
        addresses: vec![address],
        query: said("select * from wrapper"),
    };
    Stream {
        name: said("table_name"),
        rate: None,
        count: None,
        query: said("select * from table_rows"),
        sources: vec![source],
    }
}
