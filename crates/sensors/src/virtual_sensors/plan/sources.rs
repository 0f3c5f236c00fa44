//! Streams and their sources, with compiled queries.

use super::columns::WRAPPER;
use super::form::{SourcePlan, StreamPlan};
use super::{columns, windows, wrappers};
use crate::virtual_sensors::descriptor::{Descriptor, Source, Stream};
use crate::virtual_sensors::fault::{Fault, Findings, Note};
use crate::virtual_sensors::sql::compile::{Table, compile};
use crate::virtual_sensors::sql::query::Query;
use crate::virtual_sensors::sql::statement::Statement;

/// The names of the fields that a stream gives, and its plan. A fault in one of its parts does not hide those of the others.
pub(super) fn stream(
    stream: &Stream,
    descriptor: &Descriptor,
    fields: &dyn Fn(&Source) -> Option<Vec<String>>,
    findings: &mut Findings,
) -> (Option<Vec<String>>, Option<StreamPlan>) {
    let statement = findings.keep(Statement::parse(&stream.query));
    let sources: Vec<_> = stream
        .sources
        .iter()
        .map(|said| source(said, statement.as_ref(), descriptor, fields, findings))
        .collect();
    let tables = stream.sources.iter().zip(&sources).map(|(said, (names, _))| {
        let columns = names.clone()?;
        Some(Table { name: &said.alias.value, columns })
    });
    let tables: Option<Vec<_>> = tables.collect();
    let (Some(statement), Some(tables)) = (statement, tables) else { return (None, None) };
    let Some(query) = findings.keep(compile(&statement, &tables)) else { return (None, None) };
    for (_, source) in stream.sources.iter().enumerate().filter(|(at, _)| !query.tables.contains(at)) {
        let text = format!("the query of stream {} does not read {}", stream.name.value, source.alias.value);
        findings.notes.push(Note { place: stream.query.place, text });
    }
    let names = names(&query);
    let sources: Option<Vec<_>> = sources.into_iter().map(|(_, plan)| plan).collect();
    let count = stream.count.as_ref().map(|count| count.value as u64).filter(|count| *count > 0);
    let rate = stream.rate.as_ref().map_or(0, |rate| rate.value);
    let name = stream.name.value.clone();
    (Some(names), sources.map(|sources| StreamPlan { name, rate, count, sources, query }))
}

/// The names of the fields that a source gives, and its plan.
fn source(
    source: &Source,
    stream: Option<&Statement>,
    descriptor: &Descriptor,
    fields: &dyn Fn(&Source) -> Option<Vec<String>>,
    findings: &mut Findings,
) -> (Option<Vec<String>>, Option<SourcePlan>) {
    let query = findings.keep(Statement::parse(&source.query));
    let wrapper = wrappers::choose(source, &mut findings.notes);
    let wrapper = findings.keep(wrapper);
    let window = windows::window(source, &mut findings.notes);
    let window = findings.keep(window);
    let sampling = sampling(source, &mut findings.notes);
    let sampling = findings.keep(sampling);
    let (Some(query), Some(stream)) = (query, stream) else { return (None, None) };
    // Without a wrapper the source has the fields that the queries name.
    let said = wrapper.as_ref().and_then(|(_, said)| said.clone()).unwrap_or_default();
    let named = (!said.is_empty()).then(|| said.iter().map(|(name, _)| name.clone()).collect());
    let known = fields(source).or(named);
    let text_columns = said.into_iter().filter(|(_, is_text)| *is_text).map(|(name, _)| name).collect();
    let columns = columns::of(source, known, &query, stream, descriptor);
    let Some(columns) = findings.keep(columns) else { return (None, None) };
    let compiled = compile(&query, &[Table { name: WRAPPER, columns: columns.clone() }]);
    let Some(query) = findings.keep(compiled) else { return (None, None) };
    let names = names(&query);
    let alias = source.alias.value.clone();
    let plan = wrapper.zip(window).zip(sampling).map(|(((wrapper, _), window), sampling)| SourcePlan {
        alias,
        wrapper,
        window,
        sampling,
        columns,
        text_columns,
        query,
    });
    (Some(names), plan)
}

fn names(query: &Query) -> Vec<String> {
    query.output.iter().map(|output| output.name.clone()).collect()
}

/// The share of elements that are kept, as GSN draws it: by the last two digits of their times.
fn sampling(source: &Source, notes: &mut Vec<Note>) -> Result<Option<f64>, Fault> {
    let Some(said) = source.sampling_rate.as_ref().filter(|said| !said.value.trim().is_empty()) else {
        return Ok(None);
    };
    let rate: f64 = match said.value.trim().parse() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => rate,
        _ => {
            let reason = format!("sampling-rate is {:?}; it is a number from 0 to 1", said.value);
            return Err(Fault::invalid(said.place, reason));
        }
    };
    if rate == 1.0 {
        return Ok(None);
    }
    let text = if rate == 0.0 {
        format!("sampling-rate is 0, so source {} has no rows", source.alias.value)
    } else {
        format!(
            "sampling-rate keeps elements whose time in milliseconds modulo 100 is less than {}, as GSN does; of times in whole \
             seconds it keeps all",
            rate * 100.0
        )
    };
    notes.push(Note { place: said.place, text });
    Ok(Some(rate * 100.0))
}
